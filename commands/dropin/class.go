// The Class of a script: what the script does to the key of a lock, and what it answers in each
// state of the key. It refers to the keys and arguments of a call.

package dropin

import (
	"errors"
	"fmt"
	"slices"

	"redlockd/proxy/resp"

	"github.com/yuin/gopher-lua/ast"
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

type RecognisedBy uint8

const (
	ByText RecognisedBy = iota // its text, on every path
	BySHA                      // the table of known scripts
	ByPin                      // the option --script-class: what else the script does is not known
)

// Given is an argument that decides what the script does. The class holds only for this
// value.
type Given struct {
	Arg   int
	Value string
}

// Class describes a script. It does not change once it is built.
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
	Others  []int  // the KEYS, from 1, that are no locks: lists that wake waiters, values, or unused keys
	Pattern string // the script finds its keys by this glob; the call has none
	DB      int    // the ARGV, from 1, that the script passes to SELECT: must be the client's own database; 0 if it selects none

	anyKeys bool // the script treats any number of keys, all or none, with the same answers

	// Typed: the script reads the value of a lock, which is an error where it is no string.
	Typed bool
	// Shows: an answer to a caller that does not hold the lock depends on its value or its time.
	Shows bool
	// EndlessToo: the script also prolongs a lock of the token that has no expiry.
	EndlessToo bool
	// Longer: the script only makes a lease longer.
	Longer bool
	// Former is the ARGV, from 1, of a token that the lock may have before, and which is replaced by
	// Token; 0 if there is none.
	Former int
	// Looks: what the script does depends on how much is left of the lease, or on some of
	// several keys, so a quorum is looked at first.
	Looks bool

	// Of a script that was evaluated: its text, and how it runs where it is known what the keys hold.
	script []ast.Stmt
	run    func(c *Class, call ScriptCall, views []KeyView) ([]Change, ScriptReply, error)

	outcomes []outcome // of all others, by KeyState, and the one with too little time left
	refusal  *luaValue // the answer wherever the script does nothing, nil if there are several
}

// outcome is the answer of a script for one key state, and whether the script then does
// what its Op names.
type outcome struct {
	reply luaValue
	done  bool
}

// Refusal is the answer of the script wherever it does nothing, if that is always the same.
func (c *Class) Refusal(call ScriptCall) (r ScriptReply, ok bool) {
	if c.refusal == nil {
		return r, false
	}
	return c.refusal.reply(call, nil), true
}

// changes lists the change of a key by Op and state, where the script does its work.
var changes = map[Op][keyStates]Change{
	Acquire: {Free: Taken}, Reacquire: {Free: Taken, HeldBySelf: Renewed, NoExpiry: Renewed},
	Release: {HeldBySelf: Deleted, NoExpiry: Deleted}, Extend: {HeldBySelf: Renewed, NoExpiry: Renewed}, ExtendAdd: {HeldBySelf: Renewed},
	Read: {}, Overwrite: {Taken, Renewed, Overwritten, Renewed, Overwritten}, Discard: {HeldBySelf: Deleted, HeldByOther: Deleted, NoExpiry: Deleted, OtherNoExpiry: Deleted},
}

// looksByOp reports whether a quorum is looked at first in any case.
func (c *Class) looksByOp() bool {
	return c.Op == ExtendAdd || c.Op == Overwrite || c.Op == Discard || c.Op == Release && c.Keys-len(c.Others) > 1
}

// Outcome returns the change of each lock, and the answer, for what a quorum holds.
func (c *Class) Outcome(call ScriptCall, views []KeyView) (change []Change, r ScriptReply, err error) {
	if c.run != nil {
		return c.run(c, call, views)
	}
	all := views[0] // with the least time that is left
	for _, v := range views[1:] {
		if v.State != all.State {
			all.State = HeldByOther
		}
		if v.Left < all.Left {
			all.Left, all.Value = v.Left, v.Value
		}
	}
	o := c.outcomes[min(all.State, tableStates-1)]
	if all.State == OtherNoExpiry {
		o = c.outcomes[HeldByOther]
	}
	if len(c.outcomes) > int(tableStates) && (all.State == OtherNoExpiry || all.Left >= 0 && all.Left < c.least(call)) {
		o = c.outcomes[tableStates]
	}
	change = make([]Change, len(views))
	for i := range change {
		if o.done {
			change[i] = changes[c.Op][all.State]
		}
	}
	return change, o.reply.reply(call, []KeyView{all}), nil
}

// least is the minimum that must be left, in ms.
func (c *Class) least(call ScriptCall) int64 {
	if len(c.Numbers) == 0 {
		return 0
	}
	n, _ := wholeNumber(call.word(c.Numbers[0] - 1))
	return n
}

// matches reports whether the class is that of a call with these numbers of keys and arguments, and
// with these values of those that decide.
func (c *Class) matches(call ScriptCall) bool {
	return len(call.Keys) == c.Keys && len(call.Args) == c.Args && matches(c.Given, call)
}

func matches(given []Given, call ScriptCall) bool {
	for _, g := range given {
		if call.word(g.Arg-1) != g.Value {
			return false
		}
	}
	return true
}

// Fits returns an error if a call of the class cannot be served as it is.
func (c *Class) Fits(call ScriptCall) error {
	if len(call.Keys) != c.Keys {
		return fmt.Errorf("%d keys are given, the script is known with %d", len(call.Keys), c.Keys)
	}
	if len(call.Args) != c.Args {
		return fmt.Errorf("%d arguments are given, the script is known with %d", len(call.Args), c.Args)
	}
	if !matches(c.Given, call) {
		return errors.New("an argument is another one than the script is known with")
	}
	for _, arg := range c.Numbers {
		isGiven := slices.ContainsFunc(c.Given, func(g Given) bool { return g.Arg == arg })
		if n, ok := wholeNumber(call.word(arg - 1)); !ok || n < 0 && !isGiven {
			return fmt.Errorf("argument %d is not a whole number from 0 to 2^53", arg)
		}
	}
	for i, key := range call.Keys {
		if slices.Contains(call.Keys[:i], key) {
			return fmt.Errorf("key %d is the same as another one", i+1)
		}
	}
	if c.Prefix > 0 {
		n, ok := resp.ParseInteger(call.word(c.Prefix - 1))
		if length := int64(len(c.TokenOf(call, 0))); !ok || n < minPrefix || n > length {
			return fmt.Errorf("argument %d says how much of the token is compared, and is not a number of %d to its %d bytes", c.Prefix, minPrefix, length)
		}
	}
	if c.Time.Arg > 0 {
		n, ok := resp.ParseInteger(call.word(c.Time.Arg - 1))
		if ms, above := c.Time.Unit.milliseconds(n); !ok || !above || ms > maxNumber { // Redis refuses what overflows with its clock
			return fmt.Errorf("the time in argument %d is not a whole number above 0, of at most 2^53 ms", c.Time.Arg)
		}
	}
	return nil
}

// minPrefix is the minimum number of bytes of a token that a script may compare: a
// client soon guesses a single byte.
const minPrefix = 8

// TokenOf returns the token of the n-th of the locks, from 0, of a call that fits; "" if the class needs none.
func (c *Class) TokenOf(call ScriptCall, n int) string {
	if len(c.Tokens) > 0 {
		return call.word(c.Tokens[n] - 1)
	}
	return call.word(c.Token - 1)
}

// See returns what a quorum holds at the n-th of the locks, from 0, in the terms of the call. left is in ms, as PTTL
// replies it. Whose a lock is means nothing to a class without a token: its holder counts as the caller.
func (c *Class) See(call ScriptCall, n int, value string, left int64) KeyView {
	token, held := c.TokenOf(call, n), value
	if bytes := c.Bytes(call); bytes > 0 {
		token, held = token[:min(len(token), bytes)], held[:min(len(held), bytes)]
	}
	v := KeyView{State: HeldByOther, Value: value, Left: left}
	switch own := c.Token == 0 || token == held; {
	case left == -2:
		v.State = Free
	case own && left == -1:
		v.State = NoExpiry
	case own:
		v.State = HeldBySelf
	case left == -1:
		v.State = OtherNoExpiry
	}
	return v
}

// TTL returns the lease that a call that fits requests, in ms; now is the wall clock in
// ms since 1970. ok is false if the call requests none.
func (c *Class) TTL(call ScriptCall, now int64) (ms int64, ok bool) {
	switch c.Time.Unit {
	case NoTime:
		return 0, false
	case FixedMilliseconds:
		return c.Time.Fixed, true
	}
	n, _ := resp.ParseInteger(call.word(c.Time.Arg - 1))
	if ms, _ = c.Time.Unit.milliseconds(n); c.Time.Unit.absolute() {
		ms -= now
	}
	return ms, true
}

// Bytes returns the number of leading bytes of the token that the script compares; 0 = all.
func (c *Class) Bytes(call ScriptCall) int {
	n, _ := resp.ParseInteger(call.word(c.Prefix - 1))
	return int(n)
}

// wholeNumber reads an integer with which Lua counts exactly.
func wholeNumber(s string) (int64, bool) {
	n, ok := resp.ParseInteger(s)
	return n, ok && n <= maxNumber && n >= -maxNumber
}
