// The path: one way through a script. It has the state of the keys before the script,
// what the script did to them, and its locals. Every way that can run on a master is one
// of the paths.

package dropin

import (
	"maps"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// states is a set of bits: the states that a key may have had before the script ran. The
// first bits are those of KeyState.
type states uint8

const (
	stateFree          states = 1 << Free
	stateSelf          states = 1 << HeldBySelf
	stateOther         states = 1 << HeldByOther
	stateSelfNoExpiry  states = 1 << NoExpiry
	stateOtherNoExpiry states = 1 << OtherNoExpiry
	selfStates                = stateSelf | stateSelfNoExpiry
	timedStates               = stateSelf | stateOther
	allStates                 = stateFree | selfStates | stateOther | stateOtherNoExpiry
)

var eachState = []states{stateFree, stateSelf, stateSelfNoExpiry, stateOther, stateOtherNoExpiry}

// content is the present content of a key.
type content uint8

const (
	contentSame  content = iota // the same as before
	contentToken                // its token
	contentNone                 // nothing
)

// expirySource is the source of the present expiry of a key. A script has one time.
type expirySource uint8

const (
	expirySame  expirySource = iota // unchanged
	expiryNone                      // no expiry
	expiryGiven                     // the time of the script
	expiryAdded                     // its time argument, added to the remaining time
	expiryOver                      // a time of 0 or less: no key has it
)

// remainder is the comparison of the remaining time with the threshold of the script.
type remainder uint8

const (
	remainderAny remainder = iota
	remainderBelow
	remainderEnough
)

type keyPath struct {
	before    states
	remainder remainder
	content   content
	expiry    expirySource
}

// changed reports whether the script wrote to the key.
func (k keyPath) changed() bool { return k.content != contentSame || k.expiry != expirySame }

// local is a name with its value.
type local struct {
	name  string
	value luaValue
}

type path struct {
	keys     []keyPath
	locals   []local
	holds    bool // the last condition
	returned bool
	reply    luaValue
	passed   map[ast.Stmt]int // by loop that merges paths: the last turn that is over
}

func (p *path) clone() *path {
	c := *p
	c.keys, c.locals, c.passed = slices.Clone(p.keys), slices.Clone(p.locals), maps.Clone(p.passed)
	return &c
}

func (p *path) declare(name string, v luaValue) { p.locals = append(p.locals, local{name, v}) }

// size returns the number of values in a copy of the path.
func (p *path) size() int {
	n := len(p.keys) + len(p.passed)
	for i := range p.locals {
		n += p.locals[i].value.size()
	}
	return n
}

// find returns the innermost local of that name, nil if there is none.
func (p *path) find(name string) *local {
	for i := len(p.locals) - 1; i >= 0; i-- {
		if p.locals[i].name == name {
			return &p.locals[i]
		}
	}
	return nil
}

// mergeKey is equal for paths that differ only in the states of their first keys, up to
// last. It is "" for a path that is not merged: all its keys may have been in one state.
func (p *path) mergeKey(last int) string {
	common, changed, low := allStates, 0, false
	for i, k := range p.keys {
		common &= k.before
		low = low || k.remainder == remainderBelow
		if i <= last && k.changed() {
			changed++
		}
	}
	if common != 0 {
		return ""
	}
	b := strconv.AppendBool(strconv.AppendInt(nil, int64(changed), 10), low)
	for _, k := range p.keys[last+1:] {
		b = append(b, byte(k.before), byte(k.remainder), byte(k.content), byte(k.expiry))
	}
	for _, l := range p.locals {
		if l.value.showsKey() { // a later condition may distinguish the merged paths by it
			return ""
		}
		b = l.value.write(append(b, '\n'))
	}
	return string(b)
}
