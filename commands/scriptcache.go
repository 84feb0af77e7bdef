// SCRIPT LOAD, EXISTS and FLUSH: the texts of scripts by their SHA1, as EVALSHA
// needs them. They are the daemon's; a master is always sent the whole text.
package commands

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
)

const (
	// longestScript bounds one text; the longest of a known library has 3 kB.
	longestScript = 16 << 10
	// mostScripts are kept, of all clients together; a fleet has a few dozen.
	mostScripts = 1024
)

// scriptCache keeps texts. Without room the oldest goes: whoever still needs it
// is told NOSCRIPT and sends it again. The zero value is ready.
type scriptCache struct {
	mu    sync.Mutex
	texts map[string]string // by SHA1
	order []string          // of SHA1s, the oldest first
}

// shaOf is the SHA1 of a text in lower-case hex digits.
func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (s *scriptCache) keep(sha, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.texts[sha]; ok {
		return
	}
	if s.texts == nil {
		s.texts = make(map[string]string)
	}
	if len(s.order) >= mostScripts {
		delete(s.texts, s.order[0])
		s.order = append([]string(nil), s.order[1:]...)
	}
	// Copies: the originals point into the buffer of a whole command.
	s.texts[sha] = strings.Clone(text)
	s.order = append(s.order, sha)
}

func (s *scriptCache) text(sha string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.texts[sha]
	return text, ok
}

func (s *scriptCache) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.texts)
}

func (s *scriptCache) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts, s.order = nil, nil
}

// checkScript bounds a text.
func checkScript(text string) error {
	if len(text) > longestScript {
		return fmt.Errorf("a script of %d bytes is refused, allowed are 0 to %d", len(text), longestScript)
	}
	return nil
}

// scriptLoad answers the SHA1. What the script is for is only seen when it is called.
func (t *Table) scriptLoad(c *Call) error {
	text := c.Args[2]
	if err := checkScript(text); err != nil {
		return err
	}
	sha := shaOf(text)
	t.scripts.keep(sha, text)
	c.Reply(Bulk(sha))
	return nil
}

func (t *Table) scriptExists(c *Call) error {
	known := make([]Reply, 0, len(c.Args)-2)
	for _, sha := range c.Args[2:] {
		if _, ok := t.scripts.text(strings.ToLower(sha)); ok {
			known = append(known, Int(1))
		} else {
			known = append(known, Int(0))
		}
	}
	c.Reply(Array(known...))
	return nil
}

func (t *Table) scriptFlush(c *Call) error {
	if len(c.Args) == 3 && !isWord(c.Args[2], "ASYNC") && !isWord(c.Args[2], "SYNC") {
		return redisText("SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	t.scripts.flush()
	c.Reply(OK)
	return nil
}
