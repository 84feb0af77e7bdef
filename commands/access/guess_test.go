// A test of how passwords are compared: not by its time, which a busy machine
// hides, but by what stands in the source.

package access

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// Users.check compares every digest in constant time whether the name is known or
// not: the comparison stands in the one loop, under no condition, no way leads out
// before it, and nothing else looks at the digests.
func TestUsers_CompareInConstantTimeAlsoForUnknownNames(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "users.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var check *ast.FuncDecl
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "check" && f.Recv != nil {
			check = f
		}
	}
	if check == nil {
		t.Fatal("users.go has no method check; name here what compares passwords now")
	}
	found := false
	for i, statement := range check.Body.List {
		loop, ok := statement.(*ast.RangeStmt)
		if ok && compares(loop) {
			found = true
			if contains(loop, isConditional) {
				t.Error("the comparison depends on a condition")
			}
			for _, before := range check.Body.List[:i] {
				if contains(before, func(n ast.Node) bool { _, leaves := n.(*ast.ReturnStmt); return leaves }) {
					t.Error("a way leads past the comparison")
				}
			}
		}
	}
	if !found {
		t.Error("no loop of check itself calls subtle.ConstantTimeCompare")
	}
}

func isConditional(n ast.Node) bool {
	switch n.(type) {
	case *ast.IfStmt, *ast.SwitchStmt, *ast.BranchStmt, *ast.ReturnStmt:
		return true
	}
	return false
}

func compares(loop ast.Node) bool {
	return contains(loop, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "ConstantTimeCompare"
	})
}

func contains(root ast.Node, is func(ast.Node) bool) (found bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}
