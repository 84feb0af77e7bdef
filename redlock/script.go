// Lock operations in the words of somebody's lock library.
//
// The text of its script runs on every master as it is, so that the library
// reads the answers it expects; what each answer says is told by whoever knows
// the script. Three things are not left to the text: how long the lease lasts
// (every master gets an end of its own), what is taken back after an attempt
// that failed, and what is done for masters that did not answer.
package redlock

import (
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
)

// Script is one call of a library's script.
type Script struct {
	Text string
	Keys []Key    // KEYS, in order
	Args []string // ARGV
	// Tokens of the request's keys, in their order, if an acquire gives each its own. The
	// first is the request's Token. nil: that one is the token of all.
	Tokens []Token
	Time   ScriptTime
	// Prolongs: it may find the token's own copy and give it another end. Such a
	// copy was not made by the attempt, and is not taken back with it; it ends
	// earlier only where a quorum has agreed, see trim.go.
	Prolongs bool
	// Vote reads one master's answer. It is called from the lanes.
	Vote func(pool.Reply) ScriptVote
}

// ScriptTime is where ARGV has the lease, to be written anew for every master.
type ScriptTime struct {
	Arg  int // from 1; 0: the arguments are sent as they are
	Unit ScriptUnit
}

// ScriptUnit is how a time argument is meant.
type ScriptUnit uint8

const (
	ScriptMilliseconds     ScriptUnit = iota // from now
	ScriptSeconds                            // from now
	ScriptUnixMilliseconds                   // a point in time
	ScriptUnixSeconds                        // a point in time
)

// ScriptVote is what a master's answer says.
type ScriptVote uint8

const (
	ScriptUnclear ScriptVote = iota // nothing that counts
	ScriptNo                        // it did not do what it is for
	ScriptYes                       // it did
)

// shortToken: what is shorter is so easily chosen twice that copies with it are
// nobody's in particular. Nothing is taken back by such a token unless it is
// certain whose copy it was; the rest expires by itself.
const shortToken = 8

// write asks one master. The arguments tell it a lease of ttl and late, so that
// a copy which arrives up to late after it was sent still lives for all of ttl.
func (s *Script) write(l *Locker, m *pool.Moment, c *pool.Command, ttl time.Duration) {
	c.Set("EVAL", s.text(l.script.within), strconv.Itoa(len(s.Keys)))
	for _, key := range s.Keys {
		c.Args = append(c.Args, l.masterKey(key))
	}
	first := len(c.Args)
	c.Args = append(c.Args, s.Args...)
	if s.Time.Arg > 0 {
		c.Args[first+s.Time.Arg-1] = strconv.FormatInt(s.Time.of(m, ttl, l.late), 10)
	}
}

// of is a lease of ttl in the unit of the script, rounded up.
func (t ScriptTime) of(m *pool.Moment, ttl, late time.Duration) int64 {
	switch t.Unit {
	case ScriptSeconds:
		return int64((ttl + late + time.Second - 1) / time.Second)
	case ScriptUnixMilliseconds:
		return expiry(m.Time, ttl, late)
	case ScriptUnixSeconds:
		return (expiry(m.Time, ttl, late) + 999) / 1000
	}
	return (ttl + late).Milliseconds()
}

// text is what the masters get. A script that may prolong what is there already
// runs within ours: it tells which of the keys were there, and keeps ends from
// becoming earlier.
func (s *Script) text(within [2]string) string {
	if !s.Prolongs {
		return s.Text
	}
	head, body := "", s.Text
	if strings.HasPrefix(body, "#!") {
		head, body, _ = strings.Cut(body, "\n")
		head += "\n"
	}
	return head + within[0] + body + within[1]
}

// around is what text tells beside the script's own answer.
type around struct {
	before string       // for each of KEYS "1" if it was there before
	kept   []pool.Reply // copies that keep their end
	left   []pool.Reply // ms of each of KEYS
}

// answer takes apart what text asked for.
func (s *Script) answer(r pool.Reply) (own pool.Reply, more around) {
	if !s.Prolongs || r.Err != nil {
		return r, around{}
	}
	if len(r.Items) != 3 && len(r.Items) != 4 {
		return pool.Reply{Kind: pool.ReplyError, Err: errOddAnswer}, around{}
	}
	if len(r.Items) == 4 { // a nil ends the list
		own = r.Items[3]
	}
	return own, around{r.Items[0].Str, r.Items[1].Items, r.Items[2].Items}
}

const errOddAnswer = pool.MasterError("ERR a script answered something unexpected")

// existed tells whether a key of the script was there before it ran.
func (s *Script) existed(before string, key Key) bool {
	for i, one := range s.Keys {
		if one == key {
			return i < len(before) && before[i] == '1'
		}
	}
	return false
}

// isWrongType: a script that expects a string has found readers, permits or
// somebody's data. Servers of different age put it in different places.
func isWrongType(r pool.Reply) bool {
	return r.Err != nil && strings.Contains(r.Err.Error(), "WRONGTYPE")
}

// fromMaster tells whether a master has answered, be it with an error.
func fromMaster(r pool.Reply) bool {
	if r.Err == nil {
		return true
	}
	_, said := r.Err.(pool.MasterError)
	return said
}
