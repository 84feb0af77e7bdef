// The Class of a script: what the script does to the key of a lock, and how the answer
// of a master counts. It refers to the keys and arguments of a call.

package dropin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Op is what a script does.
type Op uint8

const (
	Acquire   Op = iota + 1 // takes the key if it is free
	Reacquire               // takes it, or prolongs it if the token holds it already; also an extension that re-creates
	Release                 // deletes it if the token holds it
	Extend                  // gives it a new expiry if the token holds it
	ExtendAdd               // adds to its remaining time if the token holds it
	Read                    // changes nothing
	Overwrite               // takes it from any holder
	Discard                 // deletes it for any holder
)

var opNames = []string{"", "acquire", "reacquire", "release", "extend", "extend-add", "read", "overwrite", "discard"}

func (o Op) String() string { return opNames[o] }

// KeyState is the state of the key on a master before the script runs.
type KeyState uint8

const (
	Free        KeyState = iota // the key does not exist
	HeldBySelf                  // the call's token holds it
	HeldByOther                 // another token holds it
	NoExpiry                    // the call's token holds it without an expiry
	keyStates
)

// ScriptCall is one EVAL or EVALSHA: KEYS and ARGV.
type ScriptCall struct{ Keys, Args []string }

// Unit is the unit of a time argument.
type Unit uint8

const (
	NoTime            Unit = iota // the script sets no expiry
	Milliseconds                  // from now
	Seconds                       // from now
	UnixMilliseconds              // a point in time
	UnixSeconds                   // a point in time
	FixedMilliseconds             // written in the script itself
)

// Time is the source of the expiry that a script sets.
type Time struct {
	Arg   int // from 1; 0 if Unit is NoTime or FixedMilliseconds
	Unit  Unit
	Fixed int64 // ms, for FixedMilliseconds
}

// Given is an argument that decides what the script does. The class holds only for this
// value.
type Given struct {
	Arg   int
	Value string
}

// Class is what is known of a script. It does not change once it is built.
type Class struct {
	Op      Op
	Library string // the library of the script; "" if found by its behaviour or pinned
	Purpose string // what the library uses it for ("acquire", "extend"); "" if found by its behaviour
	Keys    int    // number of KEYS it is known for
	Args    int    // number of ARGV it is known for
	Token   int    // the ARGV that is the token, from 1; 0 if the script needs none
	Tokens  []int  // for an acquire that gives each lock its own token: the ARGVs, in the order of the locks; else nil
	Prefix  int    // the ARGV with the number of leading bytes of the token that the script compares; 0: all
	Time    Time
	Given   []Given
	Numbers []int  // the ARGVs, from 1, that must be whole numbers of 0 or more: a minimum remaining time, or the expiry of a list
	Signals []int  // the KEYS, from 1, that are no locks: lists that wake waiters, or unused keys
	Pattern string // the script finds its keys by this glob; the call has none
	Publish bool   // the script publishes to channels
	DB      int    // the ARGV, from 1, that the script passes to SELECT: must be the client's own database; 0 if it selects none

	pinned  bool // the class comes from --script-class: what else the script does is not known
	anyKeys bool // the script treats any number of keys, all or none, with the same answers

	cases [keyStates]outcome
	mixed []outcome // keys in different states, and a lease with too little time left
}

// OnlyReleases reports whether the script deletes its one key if the token holds it,
// and does nothing else. Its answer for a free key must equal the one for a key of
// another token. Then any release can replace the script, and Predict has its answers.
func (c *Class) OnlyReleases() bool {
	alike := func(a, b KeyState) bool {
		s := c.cases[a].reply
		fixed := s.kind != KindArray && !s.is(remainingMS) && !s.is(remainingS) && !s.is(fromMaster)
		return fixed && c.cases[a].done == c.cases[b].done && s.same(c.cases[b].reply)
	}
	return c.Op == Release && !c.pinned && len(c.mixed) == 0 && c.Keys == 1 && c.Args == 1 && c.Token == 1 && len(c.Signals) == 0 && !c.Publish &&
		c.cases[HeldBySelf].done && !c.cases[Free].done && alike(HeldBySelf, NoExpiry) && alike(Free, HeldByOther)
}

// withKeys returns the class for another number of keys.
func (c *Class) withKeys(n int) *Class {
	several := *c
	several.Keys = n
	return &several
}

// outcome is the answer of a script for one key state, and whether the script then does
// what its Op names.
type outcome struct {
	reply Shape
	done  bool
}

// Fits returns an error if the class does not apply to a call.
func (c *Class) Fits(call ScriptCall) error {
	if len(call.Keys) != c.Keys {
		return fmt.Errorf("%d keys are given, the script is known with %d", len(call.Keys), c.Keys)
	}
	if len(call.Args) != c.Args {
		return fmt.Errorf("%d arguments are given, the script is known with %d", len(call.Args), c.Args)
	}
	for _, g := range c.Given {
		if call.Args[g.Arg-1] != g.Value {
			return fmt.Errorf("argument %d is not '%s'", g.Arg, g.Value)
		}
	}
	for _, arg := range c.Numbers {
		if n, ok := parseInt(call.Args[arg-1]); !ok || n < 0 || n > maxNumber {
			return fmt.Errorf("argument %d is not a whole number from 0 to 2^53", arg)
		}
	}
	for i, key := range call.Keys {
		if slices.Contains(call.Keys[:i], key) {
			return fmt.Errorf("key %d is the same as another one", i+1)
		}
	}
	if c.Prefix > 0 {
		n, ok := parseInt(call.Args[c.Prefix-1])
		if length := int64(len(c.TokenOf(call))); !ok || n < minPrefix || n > length {
			return fmt.Errorf("argument %d says how much of the token is compared, and is not a number of %d to its %d bytes", c.Prefix, minPrefix, length)
		}
	}
	return c.timeFits(call)
}

// minPrefix is the minimum number of bytes of a token that a script may compare: a
// client soon guesses a single byte.
const minPrefix = 8

func (c *Class) timeFits(call ScriptCall) error {
	if c.Time.Arg == 0 {
		return nil
	}
	n, ok := parseInt(call.Args[c.Time.Arg-1])
	if !ok || n <= 0 || (c.Time.Unit == Seconds || c.Time.Unit == UnixSeconds) && n > math.MaxInt64/1000 {
		return fmt.Errorf("the time in argument %d is not a whole number above 0", c.Time.Arg)
	}
	return nil
}

// TokenOf returns the token of a call that fits, "" if the class needs none.
func (c *Class) TokenOf(call ScriptCall) string { return nth(call.Args, c.Token) }

// TTL returns the lease that a call that fits requests, in ms; now is the wall clock in
// ms since 1970. ok is false if the call requests none.
func (c *Class) TTL(call ScriptCall, now int64) (ms int64, ok bool) {
	switch c.Time.Unit {
	case NoTime:
		return 0, false
	case FixedMilliseconds:
		return c.Time.Fixed, true
	}
	n, _ := parseInt(nth(call.Args, c.Time.Arg))
	switch c.Time.Unit {
	case Seconds:
		return n * 1000, true
	case UnixMilliseconds:
		return n - now, true
	case UnixSeconds:
		return n*1000 - now, true
	}
	return n, true
}

// LengthenArgs returns the arguments of a call with ms added to its time, rounded up to
// the unit of the script. It returns them unchanged if none of them is a time.
func (c *Class) LengthenArgs(call ScriptCall, ms int64) []string {
	if c.Time.Arg == 0 || ms <= 0 {
		return call.Args
	}
	n, _ := parseInt(nth(call.Args, c.Time.Arg))
	if c.Time.Unit == Seconds || c.Time.Unit == UnixSeconds {
		ms = (ms + 999) / 1000
	}
	if n > math.MaxInt64-ms {
		return call.Args
	}
	args := slices.Clone(call.Args)
	args[c.Time.Arg-1] = strconv.FormatInt(n+ms, 10)
	return args
}

// AnswerMeaning is the meaning of a master's answer.
type AnswerMeaning uint8

const (
	Unclear AnswerMeaning = iota // the script is not known to give this answer: no vote
	No                           // the script did not do what it is for: another token holds the key, or the key is free
	Yes                          // the script did it
)

// Vote counts a master's answer to a call that fits. If several key states explain the
// answer, it is a yes only if each of them is. If a pinned script returns a list that is
// not one of its answers, the first item counts.
func (c *Class) Vote(call ScriptCall, reply ScriptReply) AnswerMeaning {
	vote := c.vote(call, reply)
	if vote == Unclear && c.pinned && reply.Kind == KindArray {
		first := ScriptReply{}
		if len(reply.Items) > 0 {
			first = reply.Items[0]
		}
		return c.vote(call, first)
	}
	return vote
}

func (c *Class) vote(call ScriptCall, reply ScriptReply) AnswerMeaning {
	vote := Unclear
	for h := range c.cases {
		if c.cases[h].reply.matches(reply, call, c.excludedToken(KeyState(h), call)) {
			if !c.cases[h].done {
				return No
			}
			vote = Yes
		}
	}
	for i := range c.mixed {
		if c.mixed[i].reply.matches(reply, call, "") {
			if !c.mixed[i].done {
				return No
			}
			vote = Yes
		}
	}
	return vote
}

// KeyStates returns the states of the key that explain the answer. It is empty if none
// does, or only keys in different states.
func (c *Class) KeyStates(call ScriptCall, reply ScriptReply) []KeyState {
	var found []KeyState
	for h := range c.cases {
		if c.cases[h].reply.matches(reply, call, c.excludedToken(KeyState(h), call)) {
			found = append(found, KeyState(h))
		}
	}
	return found
}

// excludedToken is the token that a key in this state cannot hold, "" if there is none.
func (c *Class) excludedToken(h KeyState, call ScriptCall) string {
	if h == HeldByOther {
		return c.TokenOf(call)
	}
	return ""
}

// ActsOn reports whether the script does what its Op names if the key is in this state.
func (c *Class) ActsOn(h KeyState) bool { return c.cases[h].done }

// Predict returns the answer of the script for a key in this state. value is the value of
// the key, and remaining its remaining ms (-1 without an expiry, -2 if the key is free).
// ok is false if a part of the answer is not known.
func (c *Class) Predict(h KeyState, call ScriptCall, value string, remaining int64) (r ScriptReply, ok bool) {
	return c.cases[h].reply.fill(call, value, remaining)
}

// parseInt reads an integer as Redis does: no sign except one minus, no leading zero, no
// spaces.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}
