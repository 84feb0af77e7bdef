// Package spec checks that the specification fits the code and is checked itself. TLC runs
// by `make spec`.
package spec

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines keeps a module readable within a quarter of an hour.
const maxLines = 250

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// modules are the texts by name.
func modules(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.tla")
	if err != nil || len(files) == 0 {
		t.Fatal("no modules", err)
	}
	all := make(map[string]string)
	for _, file := range files {
		all[strings.TrimSuffix(file, ".tla")] = read(t, file)
	}
	return all
}

// world is a line of the file worlds.
type world struct{ name, module, expected, changes string }

func worlds(t *testing.T) (all []world) {
	t.Helper()
	for line := range strings.Lines(read(t, "worlds")) {
		if words := strings.Fields(line); len(words) >= 3 && words[0] != "#" {
			all = append(all, world{words[0], words[1], words[2], strings.Join(words[3:], " ")})
		}
	}
	return all
}

var ruleOf = regexp.MustCompile(`Has\("([a-z-]+)"\)`)

func TestModules_EachRuleHasANegativeControl(t *testing.T) {
	controlled := make(map[string]bool)
	for _, w := range worlds(t) {
		if _, without, ok := strings.Cut(w.changes, "Without={"); ok && w.expected != "holds" {
			for rule := range strings.SplitSeq(strings.TrimRight(without, "}"), ",") {
				controlled[w.module+" "+strings.Trim(rule, `"`)] = true
			}
		}
	}
	for name, text := range modules(t) {
		for _, rule := range ruleOf.FindAllStringSubmatch(text, -1) {
			key := name + " " + rule[1]
			if !controlled[key] {
				t.Errorf("%s.tla: no world leaves out the rule %q and names the promise that breaks", name, rule[1])
			}
		}
		for key := range controlled {
			if of, rule, _ := strings.Cut(key, " "); of == name && !strings.Contains(text, `Has("`+rule+`")`) {
				t.Errorf("worlds leaves out %q, which is no rule of %s.tla", rule, name)
			}
		}
	}
}

func TestModules_AreChecked(t *testing.T) {
	all := worlds(t)
	for name, text := range modules(t) {
		if !slices.ContainsFunc(all, func(w world) bool { return w.module == name && w.expected == "holds" }) {
			t.Errorf("%s.tla: no world of it must hold", name)
		}
		if n := strings.Count(text, "\n"); n > maxLines {
			t.Errorf("%s.tla has %d lines, at most %d are allowed", name, n, maxLines)
		}
	}
}

var (
	commentOf  = regexp.MustCompile(`(?s)\(\*.*?\*\)|\\\*[^\n]*`)
	fileName   = regexp.MustCompile(`\b[A-Za-z]+(?:/[a-z]+)*\.(?:go|lua|md)\b`)
	memberName = regexp.MustCompile(`\b([A-Za-z]+)\.([A-Za-z]+)\b`)
)

// source is the text of all Go files and scripts by path from the root.
func source(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, dir := range []string{"../../pool", ".."} {
		err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
			if ext := filepath.Ext(file); err == nil && !entry.IsDir() && (ext == ".go" || ext == ".lua") && !strings.HasSuffix(file, "_test.go") {
				all[file] = read(t, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestModules_NameWhatTheCodeHas(t *testing.T) {
	files := source(t)
	var code strings.Builder
	for _, text := range files {
		code.WriteString(text)
	}
	for name, text := range modules(t) {
		for _, comment := range commentOf.FindAllString(text, -1) {
			for _, file := range fileName.FindAllString(comment, -1) {
				found := strings.HasSuffix(file, ".md") // see the test of pages
				for path := range files {
					found = found || strings.HasSuffix(path, "/"+filepath.Base(file)) && strings.HasSuffix(path, strings.TrimPrefix(file, "redlock/"))
				}
				if !found {
					t.Errorf("%s.tla names the file %s, which does not exist", name, file)
				}
			}
			for _, m := range memberName.FindAllStringSubmatch(fileName.ReplaceAllString(comment, ""), -1) {
				method := regexp.MustCompile(`func \([a-z]+ \*?` + m[1] + `\) ` + m[2] + `\(`)
				function := regexp.MustCompile(`(?s)package ` + m[1] + `\n.*func (\([^)]*\) )?` + m[2] + `\(`)
				if !method.MatchString(code.String()) && !function.MatchString(code.String()) {
					t.Errorf("%s.tla names %s, which the code does not have", name, m[0])
				}
			}
		}
	}
}
