// What does a script do to the key of a lock, and how is a master's answer to
// it counted? A Class says it in terms of a call's keys and arguments.
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
	Acquire   Op = iota + 1 // takes the key if nobody holds it
	Reacquire               // takes it, or prolongs it if the token holds it already; also an extension that re-creates
	Release                 // deletes it if the token holds it
	Extend                  // gives it a new expiry if the token holds it
	ExtendAdd               // adds to what is left if the token holds it
	Read                    // changes nothing
	Overwrite               // takes it whoever holds it
	Discard                 // deletes it whoever holds it
)

var opNames = []string{"", "acquire", "reacquire", "release", "extend", "extend-add", "read", "overwrite", "discard"}

func (o Op) String() string { return opNames[o] }

// Holding is who holds the key on a master when the script comes.
type KeyState uint8

const (
	Free        KeyState = iota // nobody
	HeldBySelf                  // the call's token
	HeldByOther                 // another token
	NoExpiry                    // the call's token, without an expiry
	keyStates
)

// Call is one EVAL or EVALSHA: KEYS and ARGV.
type Call struct{ Keys, Args []string }

// Unit is how a time argument is meant.
type Unit uint8

const (
	NoTime            Unit = iota // the script asks for no expiry
	Milliseconds                  // from now
	Seconds                       // from now
	UnixMilliseconds              // a point in time
	UnixSeconds                   // a point in time
	FixedMilliseconds             // written in the script itself
)

// Time is where a script takes the expiry from.
type Time struct {
	Arg   int // from 1; 0 if Unit is NoTime or FixedMilliseconds
	Unit  Unit
	Fixed int64 // ms, for FixedMilliseconds
}

// Given is an argument that decides what the script does: the class is known
// for this value alone.
type Given struct {
	Arg   int
	Value string
}

// Class is what is known of a script. It never changes once it is made.
type Class struct {
	Op      Op
	Library string // whose script it is; "" if found by its behaviour or pinned
	Purpose string // what a known library calls it for ("acquire", "extend"); "" if found by its behaviour
	Keys    int    // number of KEYS it is known for
	Args    int    // number of ARGV it is known for
	Token   int    // the ARGV that is the token, from 1; 0 if it needs none
	Tokens  []int  // of an acquire that gives each of its locks a token of its own: the ARGVs, in the order of the locks; else nil
	Prefix  int    // the ARGV with the number of leading bytes of the token that are compared; 0: all
	Time    Time
	Given   []Given
	Numbers []int  // the ARGVs, from 1, that must be whole numbers of 0 or more: a least remaining time, or no lease
	Signals []int  // the KEYS, from 1, that are no locks: lists to wake waiters with, or not used
	Pattern string // its keys are found by this glob, not given
	Publish bool   // sends messages to channels
	DB      int    // the ARGV, from 1, that it gives to SELECT: must be the client's own database; 0 if it selects none

	pinned  bool // by the operator: what else it does is not known
	anyKeys bool // its answers are the same with any number of keys, all of them or none

	cases [keyStates]outcome
	mixed []outcome // several keys that are held differently, and too little left of a lease
}

// OnlyReleases says that the script deletes the one key if the token holds it and
// does nothing else, and answers alike whoever else holds the key, or nobody. Then
// any release does what it does, and Predict has its answers.
func (c *Class) OnlyReleases() bool {
	alike := func(a, b KeyState) bool {
		s := c.cases[a].reply
		fixed := s.kind != KindArray && !s.is(remainingMS) && !s.is(remainingS) && !s.is(fromMaster)
		return fixed && c.cases[a].done == c.cases[b].done && s.same(c.cases[b].reply)
	}
	return c.Op == Release && !c.pinned && len(c.mixed) == 0 && c.Keys == 1 && c.Args == 1 && c.Token == 1 && len(c.Signals) == 0 && !c.Publish &&
		c.cases[HeldBySelf].done && !c.cases[Free].done && alike(HeldBySelf, NoExpiry) && alike(Free, HeldByOther)
}

// withKeys is the class for another number of keys.
func (c *Class) withKeys(n int) *Class {
	several := *c
	several.Keys = n
	return &several
}

// outcome is what a script answers to one holding and whether it did what its
// Op says.
type outcome struct {
	reply Shape
	done  bool
}

// Fits says why this class is not known for a call, or nil if it is.
func (c *Class) Fits(call Call) error {
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
		if most := int64(len(c.TokenOf(call))); !ok || n < minPrefix || n > most {
			return fmt.Errorf("argument %d says how much of the token is compared, and is not a number of %d to its %d bytes", c.Prefix, minPrefix, most)
		}
	}
	return c.timeFits(call)
}

// shortestPrefix is the least that may be compared of a token: a single byte is
// soon guessed.
const minPrefix = 8

func (c *Class) timeFits(call Call) error {
	if c.Time.Arg == 0 {
		return nil
	}
	n, ok := parseInt(call.Args[c.Time.Arg-1])
	if !ok || n <= 0 || (c.Time.Unit == Seconds || c.Time.Unit == UnixSeconds) && n > math.MaxInt64/1000 {
		return fmt.Errorf("the time in argument %d is not a whole number above 0", c.Time.Arg)
	}
	return nil
}

// TokenOf is the token of a call that fits, "" if the class needs none.
func (c *Class) TokenOf(call Call) string { return nth(call.Args, c.Token) }

// TTL is the lease a call that fits asks for, in ms; now is the wall clock in
// ms since 1970. ok is false if it asks for none.
func (c *Class) TTL(call Call, now int64) (ms int64, ok bool) {
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

// Later is the arguments of a call with ms added to its time, rounded up to
// the unit of the script; the same arguments if it takes no time from them.
func (c *Class) LengthenArgs(call Call, ms int64) []string {
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

// Vote is how a master's answer is counted.
type Vote uint8

const (
	Unclear Vote = iota // an answer this script is not known to give: no vote
	No                  // it did not do what it is for: somebody else holds the key, or nobody does
	Yes                 // it did
)

// Vote counts a master's answer to a call that fits. An answer that more than
// one holding explains is a yes only if all of them are. Of a list that a pinned script
// answers, the first item counts if the list itself is not one of its answers.
func (c *Class) Vote(call Call, reply Reply) Vote {
	vote := c.vote(call, reply)
	if vote == Unclear && c.pinned && reply.Kind == KindArray {
		first := Reply{}
		if len(reply.Items) > 0 {
			first = reply.Items[0]
		}
		return c.vote(call, first)
	}
	return vote
}

func (c *Class) vote(call Call, reply Reply) Vote {
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

// Holdings says which holdings of the key explain the answer; empty if only
// keys that are held differently do, or none.
func (c *Class) KeyStates(call Call, reply Reply) []KeyState {
	var found []KeyState
	for h := range c.cases {
		if c.cases[h].reply.matches(reply, call, c.excludedToken(KeyState(h), call)) {
			found = append(found, KeyState(h))
		}
	}
	return found
}

// notMine is the token that a key held by another one cannot hold.
func (c *Class) excludedToken(h KeyState, call Call) string {
	if h == HeldByOther {
		return c.TokenOf(call)
	}
	return ""
}

// Does says whether the script does what its Op says if the key is held so.
func (c *Class) ActsOn(h KeyState) bool { return c.cases[h].done }

// Predict is the answer of the script if the key is held so: value is what it
// holds and remaining the ms it still does (-1 without expiry, -2 if absent).
// ok is false if the script fails there with an error of its own making.
func (c *Class) Predict(h KeyState, call Call, value string, remaining int64) (r Reply, ok bool) {
	return c.cases[h].reply.fill(call, value, remaining)
}

// parseInt reads an integer as Redis does: no sign but one minus, no leading
// zero, no spaces.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}
