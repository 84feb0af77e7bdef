// The Recogniser, which finds or derives the class of a script.

package dropin

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// RecognisedBy is what a script was recognised by.
type RecognisedBy uint8

const (
	Unrecognised RecognisedBy = iota
	ByPin                     // the option --script-class
	BySHA                     // the table of known scripts
	ByText                    // its text, on every path
)

var recognisedByNames = []string{"unrecognised", "pin", "sha1", "text"}

func (h RecognisedBy) String() string { return recognisedByNames[h] }

// Unknown is the error for a script that is not recognised, or not for this call.
type Unknown struct {
	SHA        string
	Reason     string
	Keys, Args int // of the call
}

// Error is the text of an error reply, without its code.
func (u *Unknown) Error() string {
	return "script " + u.SHA + " is not a recognised lock script: " + u.Reason +
		"; if it is one, say what it does with --script-class " + u.SHA + "=<class>" +
		fmt.Sprintf(",keys=%d,args=%d", u.Keys, u.Args)
}

// Options of a Recogniser.
type Options struct {
	// Pins are the classes of --script-class, by SHA1 (ParsePin).
	Pins map[string]*Class
	// MaxRemembered bounds the outcomes of evaluations that are kept. Zero means 1024:
	// each takes some 1 KB, and a fleet has a few dozen scripts.
	MaxRemembered int
}

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

// New returns a Recogniser. The error names the pin that is no SHA1.
func New(o Options) (*Recogniser, error) {
	r := &Recogniser{pins: make(map[sum]*Class), maxRemembered: o.MaxRemembered}
	if r.maxRemembered < 0 {
		return nil, fmt.Errorf("dropin: Remember is %d, allowed are 0 and more", o.MaxRemembered)
	}
	if r.maxRemembered == 0 {
		r.maxRemembered = 1024
	}
	for sha, class := range o.Pins {
		id, ok := parseSHA(sha)
		if !ok || class == nil {
			return nil, fmt.Errorf("dropin: Pins has '%s', which is not 40 hex digits with a class", sha)
		}
		r.pins[id] = class
	}
	r.forget()
	return r, nil
}

// Recognise classifies a text for a call. The class that it returns Fits the call, and
// the error is an *Unknown. A new script costs some 50 µs and at most a few
// milliseconds, a known one less than a microsecond.
func (r *Recogniser) Recognise(text string, call ScriptCall) (*Class, RecognisedBy, error) {
	id := shaOf(text)
	if class, how, found := r.lookUp(id, call); found {
		return class, how, nil
	}
	key := id.String() + callSignature(call)
	unknown := func(reason string) error {
		return &Unknown{SHA: id.String(), Reason: reason, Keys: len(call.Keys), Args: len(call.Args)}
	}
	r.evaluating.Lock()
	defer r.evaluating.Unlock()
	// Another caller may have evaluated the script in the meantime.
	if class, how, found := r.lookUp(id, call); found {
		return class, how, nil
	}
	if reason, before := r.refusal(key); before {
		return nil, Unrecognised, unknown(reason)
	}
	class, how, err := r.examine(id, text, call)
	if err != nil {
		r.keep(func() { r.refused[key] = err.Error() })
		return nil, Unrecognised, unknown(err.Error())
	}
	return class, how, nil
}

// BySHA looks up a script by its SHA1 alone, for EVALSHA. It finds pinned scripts,
// scripts of the table and scripts that Recognise has classified before. ok is false
// if the text is needed: NOSCRIPT.
func (r *Recogniser) BySHA(sha string, call ScriptCall) (class *Class, how RecognisedBy, ok bool) {
	id, isSHA := parseSHA(sha)
	if !isSHA {
		return nil, Unrecognised, false
	}
	return r.lookUp(id, call)
}

// lookUp returns a class of the script that fits the call.
func (r *Recogniser) lookUp(id sum, call ScriptCall) (*Class, RecognisedBy, bool) {
	if class, ok := r.pins[id]; ok && class.Fits(call) == nil {
		return class, ByPin, true
	}
	if class, ok := known()[id]; ok && class.Fits(call) == nil {
		return class, BySHA, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	class := firstFitting(r.bySHA[id], call)
	return class, evaluatedBy(id), class != nil
}

// evaluatedBy is what an evaluated script was recognised by. A script of the table that
// is called with more keys than there still counts as recognised by its SHA1.
func evaluatedBy(id sum) RecognisedBy {
	if _, ok := known()[id]; ok {
		return BySHA
	}
	return ByText
}

func firstFitting(classes []*Class, call ScriptCall) *Class {
	for _, class := range classes {
		if class.Fits(call) == nil {
			return class
		}
	}
	return nil
}

// examine evaluates a new script and keeps its class.
func (r *Recogniser) examine(id sum, text string, call ScriptCall) (*Class, RecognisedBy, error) {
	if pin, pinned := r.pins[id]; pinned {
		return nil, Unrecognised, fmt.Errorf("its class is pinned, but %w", pin.Fits(call))
	}
	class, err := r.classOf(id, text, call)
	if err != nil {
		return nil, Unrecognised, err
	}
	if err := class.Fits(call); err != nil {
		return nil, Unrecognised, err
	}
	r.keep(func() { r.bySHA[id] = append(r.bySHA[id], class) })
	return class, evaluatedBy(id), nil
}

func (r *Recogniser) classOf(id sum, text string, call ScriptCall) (*Class, error) {
	library, isKnown := known()[id]
	switch {
	case isKnown && library.anyKeys && len(call.Keys) > 0:
		return library.withKeys(len(call.Keys)), nil
	case isKnown && library.Prefix > 0:
		return library, nil // Fits reports what does not fit
	}
	class, err := classOfText(text, call)
	if isKnown && err == nil {
		named := *class
		named.Library, named.Purpose = library.Library, library.Purpose
		class = &named
	}
	return class, err
}

func (r *Recogniser) refusal(key string) (reason string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reason, ok = r.refused[key]
	return reason, ok
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
		_, isNumber := parseInt(arg)
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
