package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// notShipped are directories of tests and of their support.
var notShipped = []string{"redlock/sim", "redlock/chaos", "redlock/checker", "redlock/mutants", "redlock/redlocktest", "redlock/examples", "commands/examples", "commands/clients",
	"pool/faulty", "commands/dropin/textgen", "proxy/interop", "proxy/contract", "proxy/admin/browser", "bench"}

// shipped parses the Go files of the product.
func shipped(t *testing.T) (files []*ast.File) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case entry.IsDir() && (slices.Contains(notShipped, filepath.ToSlash(name)) || len(name) > 1 && name[0] == '.' || entry.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			files = append(files, file)
			return err
		}
		return nil
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}

// textOf is a constant text, with … for parts that are known only when it runs; ok
// reports whether there is any constant part.
func textOf(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, ok1 := textOf(e.X)
			right, ok2 := textOf(e.Y)
			return left + right, ok1 || ok2
		}
	case *ast.ParenExpr:
		return textOf(e.X)
	}
	return "…", false
}

var loggers = regexp.MustCompile(`(?i)(log|logger|slog|log\(\))$`)

// logLevel is the level of a call that logs, "" for other calls.
func logLevel(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs"}, method.Sel.Name) || !loggers.MatchString(nameOf(method.X)) {
		return ""
	}
	return strings.ToUpper(method.Sel.Name)
}

// nameOf is the last word of an expression.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return nameOf(e.Fun)
	}
	return ""
}

// Log messages with their level and keys, in alphabetical order.
func logMessages(t *testing.T) {
	var lines []string
	for _, file := range shipped(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || logLevel(call) == "" {
				return true
			}
			message, keys := "", []string{}
			for i, arg := range call.Args {
				text, constant := textOf(arg)
				if i == 0 {
					message = text
				} else if constant && i%2 == 1 {
					keys = append(keys, text)
				}
			}
			lines = append(lines, fmt.Sprintf("%-5s %q %s", logLevel(call), message, strings.Join(keys, " ")))
			return true
		})
	}
	compare(t, "logs", sorted(lines))
}

func sorted(lines []string) string {
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}

// errorCodes are the first words of error replies in the source code.
func errorCodes(t *testing.T) (codes []string) {
	t.Helper()
	code := regexp.MustCompile(`^[A-Z]{3,}$`)
	for _, file := range shipped(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			var all []ast.Expr
			switch n := n.(type) {
			case *ast.ReturnStmt:
				all = n.Results
			case *ast.CallExpr:
				if nameOf(n.Fun) == "Error" && len(n.Args) == 2 && logLevel(n) == "" {
					all = n.Args[:1]
				}
			}
			if len(all) == 1 {
				if text, ok := textOf(all[0]); ok && code.MatchString(text) {
					codes = append(codes, text)
				}
			}
			return true
		})
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// notShown are codes that no transcript can show, and why.
var notShown = map[string]string{
	"EXPIRED":    "needs masters that answer later than a lease lasts",
	"NOTDURABLE": "embedded masters give ids without durability",
	"LOSTSTATE":  "embedded masters end with their daemon, so none of them loses a counter",
}

// everyCodeIsShown compares the codes in the source with those of the transcripts.
func everyCodeIsShown(t *testing.T) {
	all, shown := errorCodes(t), strings.Join(shownLines(t), "\n")
	if len(all) < 15 {
		t.Errorf("only %q are found in the source", all)
	}
	for _, code := range all {
		has := strings.Contains(shown, "error \""+code+" ")
		if why := notShown[code]; has == (why != "") {
			t.Errorf("%s: shown by a transcript: %t; why not: %q", code, has, why)
		}
	}
}

// shownLines are the lines of all golden files but that of the texts.
func shownLines(t *testing.T) (lines []string) {
	t.Helper()
	for _, name := range append([]string{"usage", "logs"}, transcripts...) {
		text, err := os.ReadFile(golden(name))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	return lines
}

var (
	prose     = regexp.MustCompile(`[a-z]{2} [a-z%(…']`)
	verb      = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]|…`)
	unescaped = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
)

// textsNotShown compares the sentences in the source code that no other golden file
// shows: those that only rare faults bring about.
func textsNotShown(t *testing.T) {
	lines := shownLines(t)
	for i, line := range lines {
		lines[i] = unescaped.Replace(line)
	}
	var texts []string
	for _, text := range sentences(t) {
		parts := verb.Split(strings.ReplaceAll(strings.TrimSpace(text), "%%", "%"), -1)
		if !slices.ContainsFunc(lines, func(line string) bool { return hasParts(line, parts) }) {
			texts = append(texts, strconv.Quote(text))
		}
	}
	compare(t, "texts", "# Texts in the source code that no other file here shows.\n"+sorted(texts))
}

// hasParts reports whether the line has the parts of a text, in order.
func hasParts(line string, parts []string) bool {
	for _, part := range parts {
		at := strings.Index(line, part)
		if at < 0 {
			return false
		}
		line = line[at+len(part):]
	}
	return true
}

// sentences are the constant texts of the product that people read.
func sentences(t *testing.T) (texts []string) {
	for _, file := range shipped(t) {
		parts := map[ast.Node]bool{} // of sums that are in texts
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || parts[n] {
				return true
			}
			if text, ok := textOf(e); ok {
				if prose.MatchString(text) && strings.Count(text, "\n") < 2 {
					texts = append(texts, text)
				}
				markSum(e, parts)
			}
			return true
		})
	}
	return texts
}

// markSum marks the terms of a sum.
func markSum(e ast.Expr, parts map[ast.Node]bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		parts[sum.X], parts[sum.Y] = true, true
		markSum(sum.X, parts)
		markSum(sum.Y, parts)
	}
}
