// scriptCache keeps the texts of scripts by their SHA1, for each user, as SCRIPT LOAD,
// EXISTS, FLUSH and EVALSHA need them. A master always receives the whole text.

package rediscompat

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
)

const (
	// maxScriptBytes bounds one text; the longest of a known library has 3 kB.
	maxScriptBytes = 16 << 10
	// maxScripts are kept of all users together; a fleet has a few dozen.
	maxScripts = 1024
)

// scriptCache keeps texts by user: no user can flush or push out those of another
// one that keeps fewer. Without room the oldest text of the user with the most goes;
// its next EVALSHA is answered NOSCRIPT, and clients send the text again.
type scriptCache struct {
	mu    sync.Mutex
	users map[string]*userScripts
	all   int // texts of all users
	stats *dropin.Stats
}

type userScripts struct {
	texts map[string]string // by SHA1
	order []string          // of SHA1s, the oldest first
}

// shaOf is the SHA1 of a text in lower-case hex digits.
func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (s *scriptCache) keep(user, sha, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.users[user]
	if own == nil {
		if s.users == nil {
			s.users = make(map[string]*userScripts)
		}
		own = &userScripts{texts: make(map[string]string)}
		s.users[user] = own
	}
	if _, ok := own.texts[sha]; ok {
		return
	}
	if s.all >= maxScripts {
		s.dropOldestLocked()
	}
	// Copies: the originals point into the buffer of a whole command.
	own.texts[sha] = strings.Clone(text)
	own.order = append(own.order, sha)
	s.all++
	s.stats.CachedScripts.Store(int64(s.all))
}

func (s *scriptCache) dropOldestLocked() {
	var most *userScripts
	for _, u := range s.users {
		if most == nil || len(u.order) > len(most.order) {
			most = u
		}
	}
	delete(most.texts, most.order[0])
	most.order = append([]string(nil), most.order[1:]...)
	s.all--
}

func (s *scriptCache) text(user, sha string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.users[user]; own != nil {
		text, ok = own.texts[sha]
	}
	return text, ok
}

func (s *scriptCache) forget(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.users[user]; own != nil {
		s.all -= len(own.order)
		s.stats.CachedScripts.Store(int64(s.all))
		delete(s.users, user)
	}
}

// checkScript bounds a text.
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
	c.Reply(commands.Bulk(sha))
	return nil
}

func (s *scriptCache) exists(c *commands.Call) error {
	known := make([]commands.Reply, 0, len(c.Args)-2)
	for _, sha := range c.Args[2:] {
		if _, ok := s.text(c.Client.User, strings.ToLower(sha)); ok {
			known = append(known, commands.Int(1))
		} else {
			known = append(known, commands.Int(0))
		}
	}
	c.Reply(commands.Array(known...))
	return nil
}

func (s *scriptCache) flush(c *commands.Call) error {
	if len(c.Args) == 3 && !arg.IsWord(c.Args[2], "ASYNC") && !arg.IsWord(c.Args[2], "SYNC") {
		return commands.RedisText("SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	s.forget(c.Client.User)
	c.Reply(commands.OK)
	return nil
}
