package contract

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"redlockd/proxy/resp"
)

// reply is one RESP value. Kind is its first byte; '_' is nil of any protocol.
type reply struct {
	kind  byte
	text  string
	items []reply
}

func replyOf(v resp.Value) reply {
	r := reply{kind: v.Kind, text: v.Text}
	if v.Kind == ':' {
		r.text = strconv.FormatInt(v.Int, 10)
	}
	for _, item := range v.Items {
		r.items = append(r.items, replyOf(item))
	}
	return r
}

// maxLine is the length above which a list takes several lines.
const maxLine = 120

var brackets = map[byte][2]string{'*': {"[", "]"}, '%': {"{", "}"}, '>': {"push [", "]"}, '~': {"set [", "]"}}

// render shows a value: "string", status, 123, nil, [list], {key: value}, push [list].
func (r reply) render(indent string) string {
	switch r.kind {
	case '$':
		return quote(r.text, indent)
	case '+', ':':
		return r.text
	case '_':
		return map[string]string{"": "nil", "$-1": "nil", "*-1": "nil list"}[r.text]
	case '-':
		return "error " + strconv.Quote(r.text)
	}
	b, known := brackets[r.kind]
	if !known {
		return fmt.Sprintf("%c%s", r.kind, r.text)
	}
	inner := indent + "  "
	var all []string
	between, pairs := r.pairs()
	for i := 0; i < len(r.items); i++ {
		text := r.items[i].render(inner)
		if pairs {
			i++
			text += between + r.items[i].render(inner)
		}
		all = append(all, text)
	}
	short := b[0] + strings.Join(all, ", ") + b[1]
	if len(short) <= maxLine && !strings.Contains(short, "\n") {
		return short
	}
	return b[0] + "\n" + inner + strings.Join(all, "\n"+inner) + "\n" + indent + b[1]
}

// pairs reports whether keys and values alternate, in RESP2 by the looks of the keys, and
// what stands between them.
func (r reply) pairs() (between string, are bool) {
	if r.kind == '%' {
		return ": ", true
	}
	for i := 0; i < len(r.items); i += 2 {
		if r.items[i].kind != '$' || !keyText.MatchString(r.items[i].text) {
			return "", false
		}
	}
	return ", ", len(r.items) > 2 && len(r.items)%2 == 0
}

var keyText = regexp.MustCompile(`^[a-z][a-z_|-]+$`)

// quote shows text of several lines as such.
func quote(text, indent string) string {
	if lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n"); len(lines) > 1 {
		for i := range lines {
			lines[i] = indent + "  | " + strings.TrimRight(lines[i], "\r")
		}
		return "text\n" + strings.Join(lines, "\n")
	}
	return strconv.Quote(text)
}
