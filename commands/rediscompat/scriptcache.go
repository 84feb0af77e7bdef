// scriptCache keeps the texts of scripts by their SHA1, for each user, as SCRIPT LOAD,
// EXISTS, FLUSH and EVALSHA need them.

package rediscompat

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
)

const (
	// maxScriptBytes bounds one text; the longest of a known library has 3 kB.
	maxScriptBytes = 16 << 10
	// maxScripts and maxCachedBytes are kept of all users together; a fleet has a few dozen texts of some 300 bytes.
	maxScripts     = 1024
	maxCachedBytes = 4 << 20
)

// scriptCache keeps texts by user: no user can flush or push out those of another
// one that keeps less. Without room the oldest text of the user with the most bytes goes;
// its next EVALSHA is answered NOSCRIPT, and clients send the text again.
type scriptCache struct {
	mu    sync.Mutex
	texts map[cachedScript]string
	order []cachedScript // the oldest first
	bytes int            // of all texts
	stats *dropin.Stats
}

type cachedScript struct{ user, sha string }

// shaOf is the SHA1 of a text in lower-case hex digits.
func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (s *scriptCache) keep(user, sha, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := cachedScript{user, sha}
	if _, ok := s.texts[id]; ok {
		return
	}
	if s.texts == nil {
		s.texts = make(map[cachedScript]string)
	}
	for len(s.order) >= maxScripts || s.bytes+len(text) > maxCachedBytes {
		s.dropOldestLocked()
	}
	s.texts[id] = strings.Clone(text) // the original points into the buffer of a whole command
	s.bytes += len(text)
	s.order = append(s.order, id)
	s.stats.CachedScripts.Store(int64(len(s.order)))
}

func (s *scriptCache) dropOldestLocked() {
	kept, most := make(map[string]int), ""
	for _, id := range s.order {
		if kept[id.user] += 1 + len(s.texts[id]); kept[id.user] > kept[most] {
			most = id.user
		}
	}
	oldest := slices.IndexFunc(s.order, func(id cachedScript) bool { return id.user == most })
	s.deleteLocked(s.order[oldest])
	s.order = slices.Delete(s.order, oldest, oldest+1)
}

func (s *scriptCache) deleteLocked(id cachedScript) {
	s.bytes -= len(s.texts[id])
	delete(s.texts, id)
}

func (s *scriptCache) text(user, sha string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.texts[cachedScript{user, sha}]
	return text, ok
}

func (s *scriptCache) forget(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = slices.DeleteFunc(s.order, func(id cachedScript) bool {
		if id.user == user {
			s.deleteLocked(id)
		}
		return id.user == user
	})
	s.stats.CachedScripts.Store(int64(len(s.order)))
}

func checkScript(text string) error {
	if len(text) > maxScriptBytes {
		return fmt.Errorf("a script of %d bytes is refused, allowed are 0 to %d", len(text), maxScriptBytes)
	}
	return nil
}

// load answers the SHA1. The script is recognised only when it is called.
func (s *scriptCache) load(c *commands.Call) error {
	text := c.Args[2]
	if err := checkScript(text); err != nil {
		return err
	}
	sha := shaOf(text)
	s.keep(c.Client.User, sha, text)
	return c.Reply(commands.Bulk(sha))
}

func (s *scriptCache) exists(c *commands.Call) error {
	known := make([]commands.Reply, 0, len(c.Args)-2)
	for _, sha := range c.Args[2:] {
		_, ok := s.text(c.Client.User, strings.ToLower(sha))
		known = append(known, commands.Bool(ok))
	}
	return c.Reply(commands.Array(known...))
}

func (s *scriptCache) flush(c *commands.Call) error {
	if len(c.Args) == 3 && !arg.IsWord(c.Args[2], "ASYNC") && !arg.IsWord(c.Args[2], "SYNC") {
		return commands.RedisText("SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	s.forget(c.Client.User)
	return c.Reply(commands.OK)
}
