// The Recogniser, which finds or derives the class of a script.

package dropin

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxRemembered bounds the outcomes of evaluations that a Recogniser keeps: each takes some KB,
// and a fleet has a few dozen scripts.
const maxRemembered = 1024

// maxRememberedBytes bounds the texts of the classes among them: a parsed text takes up to some 30 times its bytes.
const maxRememberedBytes = 1 << 20

// Recogniser classifies scripts. It is safe for concurrent use. Only one caller
// evaluates at a time, so unknown scripts take at most one processor from the daemon.
type Recogniser struct {
	pins          map[sum]*Class
	maxRemembered int

	evaluating sync.Mutex

	mu    sync.Mutex
	bySHA map[sum][]*remembered
	order []*remembered // the oldest first
	bytes int           // of them all
}

// remembered is the outcome of one evaluation, for all calls that agree in what it looked at. A
// refusal is its user's alone.
type remembered struct {
	id         sum
	user       string
	keys, args int
	given      []Given
	bytes      int    // of the text, 0 if it is refused
	class      *Class // nil: refused
	reason     string
}

func (r *remembered) covers(user string, call ScriptCall) bool {
	return (r.class != nil || r.user == user) && r.keys == len(call.Keys) && r.args == len(call.Args) && matches(r.given, call)
}

// New returns a Recogniser. pins are the values of --script-class.
func New(pins []string) (*Recogniser, error) {
	r := &Recogniser{pins: make(map[sum]*Class), maxRemembered: maxRemembered, bySHA: make(map[sum][]*remembered)}
	for _, pin := range pins {
		id, class, err := parsePin(pin)
		if err != nil {
			return nil, err
		}
		r.pins[id] = class
	}
	return r, nil
}

// Find looks a script up by its SHA1 alone: pinned scripts, scripts of the table, and scripts that were
// evaluated before. Without a class and an error, the text must be evaluated.
func (r *Recogniser) Find(user, sha string, call ScriptCall) (*Class, error) {
	id, ok := parseSHA(sha)
	if !ok {
		return nil, nil
	}
	return r.find(user, id, call)
}

// Recognise classifies a text for a call. A new script costs some 50 µs and rarely more than a
// few milliseconds, a known one less than a microsecond.
func (r *Recogniser) Recognise(user, text string, call ScriptCall) (*Class, error) {
	id := shaOf(text)
	if class, err := r.find(user, id, call); class != nil || err != nil {
		return class, err
	}
	r.evaluating.Lock()
	defer r.evaluating.Unlock()
	// Another caller may have evaluated the script in the meantime.
	if class, err := r.find(user, id, call); class != nil || err != nil {
		return class, err
	}
	m := &remembered{id: id, user: user, keys: len(call.Keys), args: len(call.Args)}
	class, given, err := classOfText(text, call)
	for _, g := range given { // the words of the call are part of the client's buffer
		m.given = append(m.given, Given{Arg: g.Arg, Value: strings.Clone(g.Value)})
	}
	if m.class = class; err != nil {
		m.reason = err.Error() + Instead(text)
	} else {
		class.Given, m.bytes = m.given, len(text)
		if library := known()[id]; library != nil {
			class.By, class.Library = BySHA, library.Library
		}
	}
	r.keep(m)
	return r.find(user, id, call)
}

// find returns the class of the script for the call, or why it is not served, or neither.
func (r *Recogniser) find(user string, id sum, call ScriptCall) (*Class, error) {
	if pin := r.pins[id]; pin != nil {
		if err := pin.Fits(call); err != nil {
			return nil, r.refusal(id, call, "its class is pinned, but "+err.Error())
		}
		return pin, nil
	}
	if library := known()[id]; library != nil {
		if library.anyKeys && len(call.Keys) > 1 {
			several := *library
			several.Keys = len(call.Keys)
			several.Looks = several.Looks || several.looksByOp()
			library = &several
		}
		if library.matches(call) {
			return r.fitting(id, library, call)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.bySHA[id] {
		switch {
		case !m.covers(user, call):
		case m.class == nil:
			return nil, r.refusal(id, call, m.reason)
		default:
			return r.fitting(id, m.class, call)
		}
	}
	return nil, nil
}

func (r *Recogniser) fitting(id sum, c *Class, call ScriptCall) (*Class, error) {
	if err := c.Fits(call); err != nil {
		return nil, r.refusal(id, call, err.Error())
	}
	return c, nil
}

func (r *Recogniser) refusal(id sum, call ScriptCall, reason string) error {
	return fmt.Errorf("script %s is not a recognised lock script: %s; if it is one, declare its class with --script-class %s=<class>,keys=%d,args=%d",
		id, reason, id, len(call.Keys), len(call.Args))
}

// keep stores an outcome. Without room the oldest of the user with the most goes. A script that is still
// in use then costs one more evaluation.
func (r *Recogniser) keep(m *remembered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) >= r.maxRemembered || r.bytes+m.bytes > maxRememberedBytes {
		r.dropOldestLocked()
	}
	r.bytes += m.bytes
	r.bySHA[m.id], r.order = append(r.bySHA[m.id], m), append(r.order, m)
}

func (r *Recogniser) dropOldestLocked() {
	used, most := make(map[string]int), ""
	for _, one := range r.order {
		if used[one.user] += maxRememberedBytes/maxRemembered + one.bytes; used[one.user] > used[most] {
			most = one.user
		}
	}
	i := slices.IndexFunc(r.order, func(one *remembered) bool { return one.user == most })
	old := r.order[i]
	r.bytes -= old.bytes
	r.order = slices.Delete(r.order, i, i+1)
	if r.bySHA[old.id] = slices.DeleteFunc(r.bySHA[old.id], func(one *remembered) bool { return one == old }); len(r.bySHA[old.id]) == 0 {
		delete(r.bySHA, old.id)
	}
}
