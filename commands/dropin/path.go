// The path: one way through a script. It has the state of the keys before the script,
// what the script did to them, and its locals. Every way that can run on a master is one
// of the paths.

package dropin

import (
	"slices"
	"strconv"
)

// states is a set of bits: the states that a key may have had before the script ran.
type states uint8

const (
	stateFree states = 1 << iota
	stateSelf
	stateSelfNoExpiry // the token, without an expiry
	stateOther
	stateOtherNoExpiry // another token, without an expiry
	allStates          = stateFree | stateSelf | stateSelfNoExpiry | stateOther | stateOtherNoExpiry
	selfStates         = stateSelf | stateSelfNoExpiry
	timedStates        = stateSelf | stateOther
)

var eachState = []states{stateFree, stateSelf, stateSelfNoExpiry, stateOther, stateOtherNoExpiry}

// content is the present content of a key.
type content uint8

const (
	contentSame  content = iota // the same as before
	contentToken                // its token
	contentNone                 // nothing
)

// expirySource is the source of the present expiry of a key.
type expirySource uint8

const (
	expirySame    expirySource = iota // unchanged
	expiryNone                        // no expiry
	expiryFromArg                     // the time argument
	expiryAdded                       // the time argument, added to the remaining time
	expiryFixed                       // written in the script
)

// remainder is the comparison of the remaining time with the threshold of the script.
type remainder uint8

const (
	remainderAny remainder = iota
	remainderBelow
	remainderEnough
)

// keyPath is one key on a path.
type keyPath struct {
	before    states
	remainder remainder
	content   content
	expiry    expirySource
	fixed     int64 // ms, of expiryFixed
}

// local is a name with its value.
type local struct {
	name  string
	value luaValue
}

type path struct {
	keys     []keyPath
	locals   []local
	returned bool
	reply    luaValue
	// merged has the keys of the paths that this path absorbed.
	merged []keyPath
}

func (p *path) clone() *path {
	c := *p
	c.keys, c.locals, c.merged = slices.Clone(p.keys), slices.Clone(p.locals), slices.Clone(p.merged)
	return &c
}

// split divides a path by the earlier state of the key. A path is nil if no state is left
// for it.
func (p *path) split(key int, in states) (yes, no *path) {
	before := p.keys[key].before
	switch before & in {
	case before:
		return p, nil
	case 0:
		return nil, p
	}
	no = p.clone()
	p.keys[key].before &= in
	no.keys[key].before &^= in
	return p, no
}

// splitFree divides a path by whether the key is free now.
func (p *path) splitFree(key int) (yes, no *path) {
	switch p.keys[key].content {
	case contentNone:
		return p, nil
	case contentToken:
		return nil, p
	}
	return p.split(key, stateFree)
}

// splitSelf divides a path by whether the key holds its token now.
func (p *path) splitSelf(key int) (yes, no *path) {
	switch p.keys[key].content {
	case contentNone:
		return nil, p
	case contentToken:
		return p, nil
	}
	return p.split(key, selfStates)
}

// splitBelow divides a path by whether the remaining time was below the threshold.
func (p *path) splitBelow(key int) (yes, no *path) {
	switch p.keys[key].remainder {
	case remainderBelow:
		return p, nil
	case remainderEnough:
		return nil, p
	}
	no = p.clone()
	p.keys[key].remainder, no.keys[key].remainder = remainderBelow, remainderEnough
	return p, no
}

// find is the index of the innermost local of that name, -1 if there is none.
func (p *path) find(name string) int {
	for i := len(p.locals) - 1; i >= 0; i-- {
		if p.locals[i].name == name {
			return i
		}
	}
	return -1
}

// changed reports whether the script wrote to the key.
func (k keyPath) changed() bool { return k.content != contentSame || k.expiry != expirySame }

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
		b = strconv.AppendInt(b, k.fixed, 10)
	}
	for _, l := range p.locals {
		if l.value.dependsOnKey() { // a later condition may distinguish the merged paths by it
			return ""
		}
		b = l.value.write(append(b, '\n'))
	}
	return string(b)
}

// absorb adds the keys of another path to this one.
func (p *path) absorb(other *path) {
	for _, k := range append(slices.Clone(other.keys), other.merged...) {
		if !slices.Contains(p.merged, k) {
			p.merged = append(p.merged, k)
		}
	}
}

// remove deletes a key.
func (p *path) remove(key int) {
	p.keys[key].content, p.keys[key].expiry, p.keys[key].fixed = contentNone, expirySame, 0
}

// store writes the token to a key.
func (p *path) store(key int, expiry expirySource, fixed int64) {
	p.keys[key].content, p.keys[key].expiry, p.keys[key].fixed = contentToken, expiry, fixed
}

// withState returns the path for keys that were all in one state.
func (p *path) withState(state states) *path {
	alike := p.clone()
	for i := range alike.keys {
		alike.keys[i].before = state
	}
	return alike
}
