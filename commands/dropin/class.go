// The Class of a script: what the script does to the key of a lock, and how the answer
// of a master counts. It refers to the keys and arguments of a call.

package dropin

import (
	"fmt"
	"math"
	"slices"

	"redlockd/proxy/resp"
)

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

type RecognisedBy uint8

const (
	ByText RecognisedBy = iota // its text, on every path
	BySHA                      // the table of known scripts
	ByPin                      // the option --script-class: what else the script does is not known
)

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

// timeUnits are the units by the words of the table and of --script-class.
var timeUnits = map[string]Unit{"ms": Milliseconds, "s": Seconds, "ms@": UnixMilliseconds, "s@": UnixSeconds}

// milliseconds converts a time of this unit. ok is false if it is not above 0, or too long.
func (u Unit) milliseconds(n int64) (ms int64, ok bool) {
	if u == Seconds || u == UnixSeconds {
		return n * 1000, n > 0 && n <= math.MaxInt64/1000
	}
	return n, n > 0
}

// absolute reports whether a time of this unit is a point in time.
func (u Unit) absolute() bool { return u == UnixMilliseconds || u == UnixSeconds }

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
	By      RecognisedBy
	Library string // the library of the script; "" if found by its behaviour or pinned
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

	anyKeys bool // the script treats any number of keys, all or none, with the same answers

	// outcomes has one for each KeyState. The others follow: of keys in different states, and
	// of a lease with too little time left.
	outcomes []outcome
}

// outcome is the answer of a script for one key state, and whether the script then does
// what its Op names.
type outcome struct {
	reply luaValue
	done  bool
}

// OnlyReleases reports whether the script deletes its one key if the token holds it,
// and does nothing else. Its answer for a free key must equal the one for a key of
// another token. Then any release can replace the script, and Predict has its answers.
func (c *Class) OnlyReleases() bool {
	alike := func(a, b KeyState) bool {
		x, y := c.outcomes[a], c.outcomes[b]
		return x.done == y.done && x.reply.same(y.reply) && !x.reply.is(valueTable, valueRemainingMS, valueRemainingS, valueHeld)
	}
	return c.Op == Release && c.By != ByPin && len(c.outcomes) == int(keyStates) && c.Keys == 1 && c.Args == 1 && c.Token == 1 &&
		len(c.Signals) == 0 && !c.Publish && c.outcomes[HeldBySelf].done && !c.outcomes[Free].done &&
		alike(HeldBySelf, NoExpiry) && alike(Free, HeldByOther)
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
		if n, ok := wholeNumber(call.Args[arg-1]); !ok || n < 0 {
			return fmt.Errorf("argument %d is not a whole number from 0 to 2^53", arg)
		}
	}
	for i, key := range call.Keys {
		if slices.Contains(call.Keys[:i], key) {
			return fmt.Errorf("key %d is the same as another one", i+1)
		}
	}
	if c.Prefix > 0 {
		n, ok := resp.ParseInteger(call.Args[c.Prefix-1])
		if length := int64(len(c.TokenOf(call))); !ok || n < minPrefix || n > length {
			return fmt.Errorf("argument %d says how much of the token is compared, and is not a number of %d to its %d bytes", c.Prefix, minPrefix, length)
		}
	}
	if c.Time.Arg > 0 {
		n, ok := resp.ParseInteger(call.Args[c.Time.Arg-1])
		if _, above := c.Time.Unit.milliseconds(n); !ok || !above {
			return fmt.Errorf("the time in argument %d is not a whole number above 0", c.Time.Arg)
		}
	}
	return nil
}

// minPrefix is the minimum number of bytes of a token that a script may compare: a
// client soon guesses a single byte.
const minPrefix = 8

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
	n, _ := resp.ParseInteger(nth(call.Args, c.Time.Arg))
	if ms, _ = c.Time.Unit.milliseconds(n); c.Time.Unit.absolute() {
		ms -= now
	}
	return ms, true
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
	if vote == Unclear && c.By == ByPin && reply.Kind == KindArray {
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
	for i := range c.outcomes {
		if c.explains(i, call, reply) {
			if !c.outcomes[i].done {
				return No
			}
			vote = Yes
		}
	}
	return vote
}

// explains reports whether an outcome has this answer. A key of another token cannot hold the
// call's.
func (c *Class) explains(i int, call ScriptCall, reply ScriptReply) bool {
	not := ""
	if KeyState(i) == HeldByOther {
		not = c.TokenOf(call)
	}
	return c.outcomes[i].reply.matches(reply, call, not)
}

// Predict returns the answer of the script for a key in this state. value is the value of
// the key, and remaining its remaining ms (-1 without an expiry, -2 if the key is free).
func (c *Class) Predict(h KeyState, call ScriptCall, value string, remaining int64) ScriptReply {
	return c.outcomes[h].reply.reply(call, value, remaining)
}

// wholeNumber reads an integer with which Lua counts exactly.
func wholeNumber(s string) (int64, bool) {
	n, ok := resp.ParseInteger(s)
	return n, ok && n <= maxNumber && n >= -maxNumber
}
