// This file runs lock operations with a library's own script.
//
// The script's text runs on every master unchanged, so that the library reads the answers
// it expects. The caller, which recognises the script, supplies the meaning of each
// answer. Three things are not left to the text. They are the duration of the lease
// (every master gets an expiry of its own), the undo of a failed ballot, and the retries
// on masters that did not answer.

package lease

import (
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// Script is one call of a library's script.
type Script struct {
	Text string
	Keys []engine.Key // KEYS, in order
	Args []string     // ARGV
	// Tokens of the request's keys, in their order, if an acquire gives each key its own.
	// The first is the request's Token. nil: that one is the token of all keys.
	Tokens []engine.Token
	Time   ScriptTime
	// Prolongs: the script may find the token's own copy and give it another expiry. The
	// ballot did not make such a copy and does not take it back. The copy ends earlier
	// only where a quorum has agreed, see shorten.go.
	Prolongs bool
	// Vote reads one master's answer: Yes = the script did what it is for, No = it did not,
	// Uncounted = nothing that counts. It is called from the lanes.
	Vote func(pool.Reply) engine.Reading
	// Answers are the script's own answers to an acquire; nil: they are not noted.
	Answers *ScriptAnswers
}

// ScriptTime is the position of the lease in ARGV, where it is rewritten for every
// master.
type ScriptTime struct {
	Arg  int // from 1; 0: the arguments are sent as they are
	Unit ScriptUnit
}

// ScriptUnit is the unit of a time argument.
type ScriptUnit uint8

const (
	ScriptMilliseconds     ScriptUnit = iota // from now
	ScriptSeconds                            // from now
	ScriptUnixMilliseconds                   // a point in time
	ScriptUnixSeconds                        // a point in time
)

// A token shorter than shortToken is so easily chosen twice that its copies belong to no
// client in particular. Nothing is taken back by such a token unless the copy's owner is
// certain; the rest expires by itself.
const shortToken = 8

// write writes the command for one master. Its arguments give a lease of ttl plus late,
// so that a copy which arrives up to late after it was sent still lives for all of ttl. A script
// that may prolong an existing copy runs inside noshorten.lua, which reports which of the keys
// existed and keeps copies from ending earlier.
func (s *Script) write(e *engine.Engine, m *pool.SendContext, c *pool.Command, ttl time.Duration) {
	text := s.Text
	if s.Prolongs {
		text = e.Scripts.NoShorten.Wrap(text)
	}
	c.Set("EVAL", text, strconv.Itoa(len(s.Keys)))
	for _, key := range s.Keys {
		c.Args = append(c.Args, e.MasterKey(key))
	}
	first := len(c.Args)
	c.Args = append(c.Args, s.Args...)
	if s.Time.Arg > 0 {
		c.Args[first+s.Time.Arg-1] = strconv.FormatInt(s.Time.of(m, ttl, e.Late), 10)
	}
}

// of is a lease of ttl in the unit of the script, rounded up.
func (t ScriptTime) of(m *pool.SendContext, ttl, late time.Duration) int64 {
	switch t.Unit {
	case ScriptSeconds:
		return int64((ttl + late + time.Second - 1) / time.Second)
	case ScriptUnixMilliseconds:
		return quorum.Expiry(m.Time, ttl, late)
	case ScriptUnixSeconds:
		return (quorum.Expiry(m.Time, ttl, late) + 999) / 1000
	}
	return (ttl + late).Milliseconds()
}

// wrapperAnswer is what noshorten.lua returns beside the script's own answer.
type wrapperAnswer struct {
	before string       // for each of KEYS "1" if it existed before
	kept   []pool.Reply // copies that keep their expiry
	left   []pool.Reply // ms of each of KEYS
}

// splitAnswer separates the script's own answer from that of noshorten.lua.
func (s *Script) splitAnswer(r pool.Reply) (own pool.Reply, more wrapperAnswer) {
	if !s.Prolongs || r.Err != nil {
		return r, wrapperAnswer{}
	}
	if len(r.Items) != 3 && len(r.Items) != 4 {
		return pool.Reply{Kind: pool.ReplyError, Err: errUnexpectedAnswer}, wrapperAnswer{}
	}
	if len(r.Items) == 4 { // a nil ends the list
		own = r.Items[3]
	}
	return own, wrapperAnswer{r.Items[0].Str, r.Items[1].Items, r.Items[2].Items}
}

// isYes reports whether a trace shows a master's reply as a yes.
func (s *Script) isYes(r pool.Reply) bool {
	own, _ := s.splitAnswer(r)
	return s.Vote(own) == engine.Yes
}

const errUnexpectedAnswer = pool.MasterError("ERR a script answered something unexpected")

// existed reports whether a key of the script existed before it ran.
func (s *Script) existed(before string, key engine.Key) bool {
	for i, one := range s.Keys {
		if one == key {
			return i < len(before) && before[i] == '1'
		}
	}
	return false
}

// isWrongType reports whether a script that expects a string has found readers, permits or
// foreign data. Servers of different versions put the word in different places.
func isWrongType(r pool.Reply) bool {
	return r.Err != nil && strings.Contains(r.Err.Error(), "WRONGTYPE")
}

// ScriptAnswers are a script's own answers to an acquire, from masters whose vote
// counted. They may be read once the outcome is known.
type ScriptAnswers struct {
	Yes, No       pool.Reply
	HasYes, HasNo bool
}

func (s *ScriptAnswers) note(vote engine.Reading, r pool.Reply) {
	switch vote {
	case engine.Yes:
		s.Yes, s.HasYes = r, true
	case engine.No:
		s.No, s.HasNo = r, true
	}
}
