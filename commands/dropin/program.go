// How is a stranger's script made harmless before it runs? Its syntax tree is
// changed in three places, because the Lua machine can count instructions but
// not what one of them costs:
//
//   - a .. b becomes a call of ours, which counts the bytes;
//   - t[k] asks us about k, because t[60000000]=1 alone takes a gigabyte;
//   - every block, and the right side of "and" and "or", reports that it was
//     reached. A script is only recognised if every call it can make was reached
//     by a probe: what was never seen to run may do anything.
package dropin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// longestScript in bytes. The longest lock script in use has 3 KB.
	longestScript = 16 << 10
	// Names of ours that no script can say.
	nameConcat  = "\x00concat"
	nameIndex   = "\x00index"
	nameReached = "\x00reached"
	// An index below this needs no question: it is an argument or a key.
	smallIndex = 64
)

// block is a piece of a script that runs as a whole or not at all.
type block struct {
	line    int
	calls   bool     // it calls something that may matter
	assigns []string // names it gives another value; "" for a field of a table
	reached bool
}

// program is a script ready to be probed. It is used by one prober alone.
type program struct {
	form     Form
	survey   *survey
	proto    *lua.FunctionProto
	machine  *machine // made by the first run
	steps    int      // what all further runs may take
	bytes    int
	blocks   []block
	literals []string // values that the script may compare with
}

// parseScript reads a text. Errors say what the script does wrong.
func parseScript(text string) (script []ast.Stmt, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("it is not Lua: %v", broken)
		}
	}()
	if len(text) > longestScript {
		return nil, fmt.Errorf("it has %d bytes, allowed are 1 to %d", len(text), longestScript)
	}
	if strings.HasPrefix(text, "#!") {
		line, rest, _ := strings.Cut(text, "\n")
		if line = strings.TrimSuffix(line, "\r"); line != "#!lua" && !strings.HasPrefix(line, "#!lua ") {
			return nil, errors.New("its first line names another engine than lua")
		}
		text = "\n" + rest
	}
	script, err = parse.Parse(bytes.NewReader([]byte(text)), "script")
	if err != nil {
		reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, fmt.Errorf("it is not Lua: %s", strings.Trim(short(reason), "'"))
	}
	return script, nil
}

// load makes a program of a text. One that is known as a library's is vouched for:
// it reaches what it was written to reach.
func load(text string, vouched bool) (p *program, err error) {
	script, err := parseScript(text)
	if err != nil {
		return nil, err
	}
	p = &program{steps: mostWork, bytes: mostWaste}
	ok := false
	if p.form, ok = formOf(script); !ok {
		return nil, fmt.Errorf("it is nested more than %d deep", deepest)
	}
	if p.survey, err = examine(script); err == nil && !vouched {
		err = p.survey.reach()
	}
	if err != nil {
		return nil, err
	}
	rw := &rewriter{p: p}
	script = rw.block(script)
	if rw.err != nil {
		return nil, rw.err
	}
	defer func() {
		if broken := recover(); broken != nil {
			err = errors.New("it is too large for the Lua machine")
		}
	}()
	if p.proto, err = lua.Compile(script, "script"); err != nil {
		return nil, errors.New("it does not compile")
	}
	return p, nil
}

// unreached is the line of the first piece that no probe has come to and that
// may do something, 0 if there is none. An assignment may change which key a
// command works on or what is compared, unless it is the time of a command.
func (p *program) unreached() int {
	for _, b := range p.blocks {
		matters := func(name string) bool { return !p.survey.mayAssign(name) }
		if !b.reached && (b.calls || slices.ContainsFunc(b.assigns, matters)) {
			return max(b.line, 1)
		}
	}
	return 0
}
