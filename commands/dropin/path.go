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
	stateAbsent states = 1 << iota
	stateMine
	stateEndless // the token, without an expiry
	stateOther
	stateOtherEndless // another token, without an expiry
	allStates         = stateAbsent | stateMine | stateEndless | stateOther | stateOtherEndless
	mineStates        = stateMine | stateEndless
	timedStates       = stateMine | stateOther
)

var eachState = []states{stateAbsent, stateMine, stateEndless, stateOther, stateOtherEndless}

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
	expirySame  expirySource = iota // what it was
	expiryNone                      // it has none
	expiryAsked                     // the time argument
	expiryAdded                     // the time argument, added to what was left
	expiryFixed                     // written in the script
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
	before  states
	left    remainder
	content content
	expiry  expirySource
	fixed   int64 // ms, of expiryFixed
}

// local is a name with its value.
type local struct {
	name  string
	value value
}

type path struct {
	keys     []keyPath
	locals   []local
	returned bool
	reply    value
	// seen is what merged paths did to their keys, beside this one's.
	seen []keyPath
}

func (p *path) clone() *path {
	c := *p
	c.keys, c.locals, c.seen = slices.Clone(p.keys), slices.Clone(p.locals), slices.Clone(p.seen)
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
func (p *path) absent(key int) (yes, no *path) {
	switch p.keys[key].content {
	case contentNone:
		return p, nil
	case contentToken:
		return nil, p
	}
	return p.split(key, stateAbsent)
}

// mine parts a path by whether the key holds its token now.
func (p *path) mine(key int) (yes, no *path) {
	switch p.keys[key].content {
	case contentNone:
		return nil, p
	case contentToken:
		return p, nil
	}
	return p.split(key, mineStates)
}

// below parts a path by whether less than the threshold was left.
func (p *path) below(key int) (yes, no *path) {
	switch p.keys[key].left {
	case remainderBelow:
		return p, nil
	case remainderEnough:
		return nil, p
	}
	no = p.clone()
	p.keys[key].left, no.keys[key].left = remainderBelow, remainderEnough
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
		low = low || k.left == remainderBelow
		if i <= last && k.changed() {
			changed++
		}
	}
	if common != 0 {
		return ""
	}
	b := strconv.AppendBool(strconv.AppendInt(nil, int64(changed), 10), low)
	for _, k := range p.keys[last+1:] {
		b = append(b, byte(k.before), byte(k.left), byte(k.content), byte(k.expiry))
		b = strconv.AppendInt(b, k.fixed, 10)
	}
	for _, l := range p.locals {
		if l.value.looksAtKey() { // a later condition may tell the merged paths apart by it
			return ""
		}
		b = l.value.write(append(b, '\n'))
	}
	return string(b)
}

// absorb takes over what another path did to its keys.
func (p *path) absorb(other *path) {
	for _, k := range append(slices.Clone(other.keys), other.seen...) {
		if !slices.Contains(p.seen, k) {
			p.seen = append(p.seen, k)
		}
	}
}

// remove empties a key.
func (p *path) remove(key int) {
	p.keys[key].content, p.keys[key].expiry, p.keys[key].fixed = contentNone, expirySame, 0
}

// store writes the token to a key.
func (p *path) store(key int, expiry expirySource, fixed int64) {
	p.keys[key].content, p.keys[key].expiry, p.keys[key].fixed = contentToken, expiry, fixed
}

// only is the path for keys that were all held in one way.
func (p *path) only(state states) *path {
	alike := p.clone()
	for i := range alike.keys {
		alike.keys[i].before = state
	}
	return alike
}
