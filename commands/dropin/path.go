// path is one way through a script: what its keys held before, what it did to them,
// and what its locals are. Every way that can run on a master is some path.
package dropin

import (
	"slices"
	"strconv"
)

// states are what a key may have held before the script ran: bits.
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

// content is what a key holds now.
type content uint8

const (
	contentSame  content = iota // what it held before
	contentToken                // its token
	contentNone                 // nothing
)

// expirySource is where the expiry of a key comes from.
type expirySource uint8

const (
	expirySame    expirySource = iota // what it was
	expiryNone                        // it has none
	expiryFromArg                     // the time argument
	expiryAdded                       // the time argument, added to what was left
	expiryFixed                       // written in the script
)

// remainder is how what was left compares with the script's threshold.
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
	// seen is what merged paths did to their keys, beside this one's.
	merged []keyPath
}

func (p *path) clone() *path {
	c := *p
	c.keys, c.locals, c.merged = slices.Clone(p.keys), slices.Clone(p.locals), slices.Clone(p.merged)
	return &c
}

// split parts a path by what the key held before; nil where nothing is left.
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

// absent parts a path by whether the key holds nothing now.
func (p *path) splitFree(key int) (yes, no *path) {
	switch p.keys[key].content {
	case contentNone:
		return p, nil
	case contentToken:
		return nil, p
	}
	return p.split(key, stateFree)
}

// mine parts a path by whether the key holds its token now.
func (p *path) splitSelf(key int) (yes, no *path) {
	switch p.keys[key].content {
	case contentNone:
		return nil, p
	case contentToken:
		return p, nil
	}
	return p.split(key, selfStates)
}

// below parts a path by whether less than the threshold was left.
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

// find is the place of a local, the innermost of its name; -1 if there is none.
func (p *path) find(name string) int {
	for i := len(p.locals) - 1; i >= 0; i-- {
		if p.locals[i].name == name {
			return i
		}
	}
	return -1
}

// changed tells whether the script wrote to the key.
func (k keyPath) changed() bool { return k.content != contentSame || k.expiry != expirySame }

// mergeKey is equal for paths that differ only in which of the first keys, up to
// last, were held in which way. "" is for a path that stays alone: in it all keys may
// have been held alike.
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
		if l.value.dependsOnKey() { // a later condition may tell the merged paths apart by it
			return ""
		}
		b = l.value.write(append(b, '\n'))
	}
	return string(b)
}

// absorb takes over what another path did to its keys.
func (p *path) absorb(other *path) {
	for _, k := range append(slices.Clone(other.keys), other.merged...) {
		if !slices.Contains(p.merged, k) {
			p.merged = append(p.merged, k)
		}
	}
}
