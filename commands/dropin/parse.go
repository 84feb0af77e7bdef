// The text of a script. Only texts that Redis reads in the same way, byte for byte, are
// parsed.

package dropin

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// maxScript is in bytes. The longest lock script in use has 3 KB.
	maxScript = 16 << 10
	// maxNesting bounds nested statements and expressions. Lua itself allows 200.
	maxNesting = 100
)

// parseText reads a text. Its errors describe what is wrong in the script.
func parseText(text string) (script []ast.Stmt, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it is not Lua: %v", cause)
		}
	}()
	if len(text) > maxScript {
		return nil, fmt.Errorf("it has %d bytes, allowed are 1 to %d", len(text), maxScript)
	}
	if strings.HasPrefix(text, "#!") {
		line, rest, _ := strings.Cut(text, "\n")
		if line = strings.TrimSuffix(line, "\r"); line != "#!lua" && !strings.HasPrefix(line, "#!lua ") {
			return nil, errors.New("its first line names another engine than lua")
		}
		text = "\n" + rest
	}
	if err := checkBytes(text); err != nil {
		return nil, err
	}
	script, err = parse.Parse(bytes.NewReader([]byte(text)), "script")
	if err != nil {
		reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, fmt.Errorf("it is not Lua: %s", strings.Trim(short(reason), "'"))
	}
	return script, nil
}

// checkBytes rejects bytes that this parser and the one of Redis could read differently:
// escapes in strings, and control characters other than a tab and the end of a line. In
// Redis, a carriage return alone ends a line, and so a comment.
func checkBytes(text string) error {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\\':
			return fmt.Errorf("line %d: it has a backslash, which no known lock script has", lineAt(text, i))
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n', c == '\n', c == '\t':
		case c < ' ' || c == 0x7f:
			return fmt.Errorf("line %d: it has the control character 0x%02x, allowed are tabs and ends of lines", lineAt(text, i), c)
		}
	}
	return nil
}

func lineAt(text string, i int) int { return 1 + strings.Count(text[:i], "\n") }

// short quotes a word of a script for an error. It replaces characters that could break the
// line.
func short(word string) string {
	const maxLength = 32
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '\'' {
			return '?'
		}
		return r
	}, word[:min(len(word), maxLength)])
	return "'" + clean + "'"
}
