// The Recogniser, which finds or derives the class of a script.

package dropin

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"redlockd/proxy/resp"
)

// maxRemembered bounds the outcomes of evaluations that a Recogniser keeps: each takes some
// 1 KB, and a fleet has a few dozen scripts.
const maxRemembered = 1024

// Recogniser classifies scripts. It is safe for concurrent use. Only one caller
// evaluates at a time, so unknown scripts take at most one processor from the daemon.
type Recogniser struct {
	pins          map[sum]*Class
	maxRemembered int

	evaluating sync.Mutex

	mu      sync.Mutex
	bySHA   map[sum][]*Class
	refused map[string]string // by SHA1 and callSignature: the reason
}

// New returns a Recogniser. pins are the values of --script-class.
func New(pins []string) (*Recogniser, error) {
	r := &Recogniser{pins: make(map[sum]*Class), maxRemembered: maxRemembered}
	for _, pin := range pins {
		id, class, err := parsePin(pin)
		if err != nil {
			return nil, err
		}
		r.pins[id] = class
	}
	r.forget()
	return r, nil
}

// Recognise classifies a text for a call. The class that it returns Fits the call. A new
// script costs some 50 µs and rarely more than a few milliseconds, a known one less than a
// microsecond.
func (r *Recogniser) Recognise(text string, call ScriptCall) (*Class, error) {
	id := shaOf(text)
	if class := r.find(id, call); class != nil {
		return class, nil
	}
	r.evaluating.Lock()
	defer r.evaluating.Unlock()
	// Another caller may have evaluated the script in the meantime.
	if class := r.find(id, call); class != nil {
		return class, nil
	}
	key := id.String() + callSignature(call)
	r.mu.Lock()
	reason, before := r.refused[key]
	r.mu.Unlock()
	if !before {
		class, err := r.classOf(id, text, call)
		switch {
		case class == nil:
			reason = err.Error()
			r.keep(func() { r.refused[key] = reason })
		case err == nil:
			r.keep(func() { r.bySHA[id] = append(r.bySHA[id], class) })
			return class, nil
		default: // another call of the script may fit
			reason = err.Error()
		}
	}
	return nil, fmt.Errorf("script %s is not a recognised lock script: %s; if it is one, declare its class with --script-class %s=<class>,keys=%d,args=%d",
		id, reason, id, len(call.Keys), len(call.Args))
}

// BySHA looks up a script by its SHA1 alone, for EVALSHA. It finds pinned scripts,
// scripts of the table and scripts that Recognise has classified before. It returns nil
// if the text is needed: NOSCRIPT.
func (r *Recogniser) BySHA(sha string, call ScriptCall) *Class {
	id, ok := parseSHA(sha)
	if !ok {
		return nil
	}
	return r.find(id, call)
}

// find returns a class of the script that fits the call, nil if there is none.
func (r *Recogniser) find(id sum, call ScriptCall) *Class {
	for _, class := range []*Class{r.pins[id], known()[id]} {
		if class != nil && class.Fits(call) == nil {
			return class
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, class := range r.bySHA[id] {
		if class.Fits(call) == nil {
			return class
		}
	}
	return nil
}

// classOf finds the class of a new script for a call. A script of the table that is called
// with more keys than there still counts as recognised by its SHA1.
func (r *Recogniser) classOf(id sum, text string, call ScriptCall) (*Class, error) {
	if pin := r.pins[id]; pin != nil {
		return pin, fmt.Errorf("its class is pinned, but %w", pin.Fits(call))
	}
	library := known()[id]
	if library != nil && (library.anyKeys && len(call.Keys) > 0 || library.Prefix > 0) {
		several := *library
		if library.anyKeys {
			several.Keys = max(1, len(call.Keys))
		}
		return &several, several.Fits(call)
	}
	class, err := classOfText(text, call)
	if err != nil {
		return nil, err
	}
	if library != nil {
		class.By, class.Library = BySHA, library.Library
	}
	return class, class.Fits(call)
}

// keep stores an outcome. When the limit is reached, the Recogniser forgets all
// outcomes. A script that is still in use then costs one more evaluation.
func (r *Recogniser) keep(store func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := len(r.refused)
	for _, classes := range r.bySHA {
		kept += len(classes)
	}
	if kept >= r.maxRemembered {
		r.forget()
	}
	store()
}

func (r *Recogniser) forget() {
	r.bySHA = make(map[sum][]*Class)
	r.refused = make(map[string]string)
}

// callSignature is the part of a call that a refusal may depend on. It has the number of
// keys, the values of short arguments, and the kind and length of all others. So a
// refusal stays valid although tokens and times change with every call.
func callSignature(call ScriptCall) string {
	var b strings.Builder
	b.WriteString("/" + strconv.Itoa(len(call.Keys)))
	for _, arg := range call.Args {
		_, isNumber := resp.ParseInteger(arg)
		switch {
		case isNumber && len(arg) > 1:
			b.WriteString("/#" + strconv.Itoa(len(arg)))
		case len(arg) <= 4:
			b.WriteString("/=" + arg)
		default:
			b.WriteString("/" + strconv.Itoa(len(arg)))
		}
	}
	return b.String()
}
