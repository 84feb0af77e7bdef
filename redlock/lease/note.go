// Note is what a note about a holder contains, and its form on the masters.

package lease

import (
	"net/url"
	"strconv"
	"strings"

	"redlockd/redlock/engine"
)

// Note describes one holder.
type Note struct {
	Meta   string // the text that the holder gave
	Daemon string // the daemon that the holder came through
	Client string // the client's address at that daemon
	Name   string // the connection's name
	Fence  engine.Fence
}

// encode writes a note as words. The text comes last, because it may hold any byte.
func (n *Note) encode() string {
	return strings.Join([]string{
		strconv.FormatInt(int64(n.Fence), 10), url.QueryEscape(n.Daemon), url.QueryEscape(n.Client), url.QueryEscape(n.Name), n.Meta,
	}, " ")
}

// ParseNote reads a note; nil if there is none.
func ParseNote(text string) *Note {
	words := strings.SplitN(text, " ", 5)
	if len(words) != 5 {
		return nil
	}
	fence, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return nil
	}
	for i := range words[1:4] {
		if words[i+1], err = url.QueryUnescape(words[i+1]); err != nil {
			return nil
		}
	}
	return &Note{Fence: engine.Fence(fence), Daemon: words[1], Client: words[2], Name: words[3], Meta: words[4]}
}

// NotesKey is where the masters keep the notes of a key's holders.
func NotesKey(e *engine.Engine, k engine.Key) string { return e.KeyOf("meta:", k) }
