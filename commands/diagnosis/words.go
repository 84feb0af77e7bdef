// Words for keys and for the holders of locks.

package diagnosis

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Holder is what is known of a holder. Everything but Token is from its note, and may be "".
type Holder struct {
	Meta, Name, Client, Daemon string
	Token                      string // its hash
}

// Words are META and the client of a holder, as far as its note has them, else the hash of
// its token.
func (h Holder) Words() (words [2]string) {
	client := h.Client
	if client == "" && h.Daemon != "" {
		client = "through " + h.Daemon
	}
	words = [2]string{Printable(h.Meta), Printable(strings.TrimSpace(h.Name + " " + client))}
	if words == [2]string{} {
		words[1] = "token " + h.Token
	}
	return words
}

// Text describes the holders of a lock in a sentence; h is the first of count.
func (h Holder) Text(count int) string {
	if count != 1 {
		return fmt.Sprintf("%d holders", count)
	}
	words := h.Words()
	if words[0] == "" || words[1] == "" {
		return words[0] + words[1]
	}
	return words[0] + " (" + words[1] + ")"
}

// Printable makes a text that others chose fit for people. Invisible characters, such as
// marks that change the direction of writing, are escaped as in Go, and the text is quoted
// then.
func Printable(text string) string {
	invisible := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, invisible) || strings.TrimSpace(text) != text {
		return strconv.Quote(text)
	}
	return text
}
