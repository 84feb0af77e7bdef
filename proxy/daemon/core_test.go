package daemon

// core_test.go: the core is the files that a plain lock needs. It fits into an afternoon, and names no
// option: a mode comes with the request, and everything else hangs on from outside.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	mostCoreLines     = 6500 // 5,000 is the aim; 5,911 today and a tenth
	mostRequestFields = 8    // of a LockRequest
	mostModeTerms     = 3    // of one condition about modes
)

// coreFiles are the files of the core, by their directories; "" = all.
var coreFiles = map[string]string{
	"redlock/quorum": "",
	"redlock/engine": "",
	"redlock/lease":  "acquire extend fail grant late lease leases mode plain records release releasewords request tokenqueue undo vote",
	"pool":           "batch connection exchange flush group lane operation queue tasks verify",
	"commands/lock":  "acquire dextend dlock doc dunlock rows",
	"commands":       "pendinggrant",
}

// optionWords are the words of identifiers that an option has brought.
var optionWords = strings.Fields(`shared reader readers permit permits fair hold holds delay keep keeps meta note notes reenters
	reentrant level levels owner part parts event events trace traced tracing track tracks quota valued retakes swap ticket deadlock`)

// coreGaps are the words that files of the core still have. It only ever shrinks.
var coreGaps = map[string]string{
	"commands/lock/acquire.go":    "fair hold meta owner",
	"commands/lock/dextend.go":    "delay",
	"commands/lock/dlock.go":      "delay fair hold level levels meta owner permits readers reentrant",
	"commands/lock/dunlock.go":    "keep level owner",
	"commands/lock/rows.go":       "delay",
	"commands/pendinggrant.go":    "deadlock note quota valued",
	"redlock/engine/ballot.go":    "note trace",
	"redlock/engine/counters.go":  "holds",
	"redlock/engine/errors.go":    "note",
	"redlock/engine/missing.go":   "note",
	"redlock/engine/names.go":     "level owner",
	"redlock/engine/trace.go":     "trace",
	"redlock/lease/acquire.go":    "holds note part trace",
	"redlock/lease/extend.go":     "trace",
	"redlock/lease/fail.go":       "note",
	"redlock/lease/grant.go":      "part",
	"redlock/lease/late.go":       "note",
	"redlock/lease/lease.go":      "event hold part",
	"redlock/lease/mode.go":       "note",
	"redlock/lease/plain.go":      "valued",
	"redlock/lease/records.go":    "hold note",
	"redlock/lease/release.go":    "event trace",
	"redlock/lease/request.go":    "meta trace",
	"redlock/lease/tokenqueue.go": "holds",
	"redlock/lease/vote.go":       "note",
}

// identifierWord is one word of a name such as endsLate or HTTPPort.
var identifierWord = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

func isCore(path string) bool {
	files, known := coreFiles[filepath.ToSlash(filepath.Dir(path))]
	name := strings.TrimSuffix(filepath.Base(path), ".go")
	return known && (files == "" || slices.Contains(strings.Fields(files), name))
}

// eachCoreFile calls do for each file of the core; every file of the list must exist.
func eachCoreFile(t *testing.T, s *source, do func(path string, lines int, file *ast.File)) {
	t.Helper()
	seen := map[string]int{}
	for dir := range coreFiles {
		p := s.packages[dir]
		if p == nil {
			t.Fatalf("no package %s", dir)
		}
		for _, file := range p.files {
			if path := s.path(file.Pos()); isCore(path) {
				seen[dir]++
				do(path, p.lines[path], file)
			}
		}
	}
	for dir, files := range coreFiles {
		if n := len(strings.Fields(files)); seen[dir] < max(n, 1) {
			t.Errorf("%s: %d of %d files of the core exist: adapt the list", dir, seen[dir], n)
		}
	}
}

func TestCore_FitsIntoAnAfternoon(t *testing.T) {
	sum := 0
	eachCoreFile(t, product(t), func(_ string, lines int, _ *ast.File) { sum += lines })
	t.Logf("%d lines", sum)
	if sum > mostCoreLines {
		t.Errorf("the core has %d lines, at most %d are allowed: an option belongs into a file of its own", sum, mostCoreLines)
	}
}

// verbs are words that the lanes have in another meaning.
var verbs = strings.Fields("events keep keeps note part track")

// wordsIn are the option words of a file's identifiers, sorted.
func wordsIn(path string, file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		for _, word := range identifierWord.FindAllString(id.Name, -1) {
			word = strings.ToLower(word)
			if slices.Contains(optionWords, word) && !(filepath.Dir(path) == "pool" && slices.Contains(verbs, word)) {
				found = append(found, word)
			}
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found)
}

func TestCore_NamesNoOption(t *testing.T) {
	eachCoreFile(t, product(t), func(path string, _ int, file *ast.File) {
		found, known := wordsIn(path, file), strings.Fields(coreGaps[path])
		for _, word := range found {
			if !slices.Contains(known, word) {
				t.Errorf("%s names %q, the word of an option: let the option hang on from outside", path, word)
			}
		}
		for _, word := range known {
			if !slices.Contains(found, word) {
				t.Errorf("%s names %q no longer: take it out of coreGaps", path, word)
			}
		}
	})
}

func TestCore_ARequestHasFewFields(t *testing.T) {
	request := product(t).packages["redlock/lease"].types.Scope().Lookup("LockRequest").Type().Underlying().(*types.Struct)
	if n := request.NumFields(); n == 0 || n > mostRequestFields {
		t.Errorf("a LockRequest has %d fields, at most %d are allowed: a mode has its own, and what waits or holds wraps the request", n, mostRequestFields)
	}
}

// modeName is a name that a condition about modes has, in the packages that have modes.
var modeName = regexp.MustCompile(`^(Kind|Mode|Exclusive|Shared|Permits|Readers|announced|bounded)$`)

func TestCore_NoConditionIsAboutManyModes(t *testing.T) {
	s := product(t)
	for path, p := range s.packages {
		if !slices.Contains([]string{"redlock/lease", "redlock/engine", "commands/lock"}, path) {
			continue
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				if terms, aboutModes := conditionOf(n); aboutModes && terms > mostModeTerms {
					t.Errorf("%s: %d conditions about modes in one, at most %d are allowed: let the mode say it", s.files.Position(n.Pos()), terms, mostModeTerms)
					return false
				}
				return true
			})
		}
	}
}

// conditionOf counts the terms of a condition, and reports whether one is about modes.
func conditionOf(n ast.Node) (terms int, aboutModes bool) {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return conditionOf(n.X)
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			left, a := conditionOf(n.X)
			right, b := conditionOf(n.Y)
			return left + right, a || b
		}
	case ast.Expr:
	default:
		return 0, false
	}
	ast.Inspect(n, func(part ast.Node) bool {
		id, ok := part.(*ast.Ident)
		aboutModes = aboutModes || ok && modeName.MatchString(id.Name)
		return true
	})
	return 1, aboutModes
}

func TestConditionOf_CountsTerms(t *testing.T) {
	for text, want := range map[string]int{"a": 0, "r.Mode == x": 1, "a && (b || r.Kind() == c) && !d": 4, "a || b": 0} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if terms, about := conditionOf(e); about != (want > 0) || about && terms != want {
			t.Errorf("%s: %d terms, about modes %v, want %d", text, terms, about, want)
		}
	}
}
