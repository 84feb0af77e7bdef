package checker

// The recorder of what clients saw, cheap enough not to disturb them. Each client
// appends to a buffer of its own; the buffers are merged only when the history is read.
//
// Two readings of the clock carry all conclusions, and both err towards reporting
// nothing: Invoke is read before anything else happens, Complete is the
// first thing read when the answer is there. Because validity counts from
// Complete, a late reading would lengthen a lease; GrantedUntil is free of that
// and fits clients that report a deadline instead.

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Recorder collects the calls of any number of clients on one clock.
type Recorder struct {
	origin time.Time
	now    func() time.Duration

	mu      sync.Mutex
	clients []*ClientRecorder
}

// NewRecorder returns an empty recorder. now must be monotonic and safe for
// concurrent use; nil means the machine's monotonic clock, with this moment as
// its origin. Pass the clock of the masters' fake where a test moves the time.
func NewRecorder(now func() time.Duration) *Recorder {
	r := &Recorder{origin: time.Now(), now: now}
	if now == nil {
		r.now = func() time.Duration { return time.Since(r.origin) }
	}
	return r
}

// Now reads the recorder's clock.
func (r *Recorder) Now() time.Duration { return r.now() }

// At converts an instant to the machine's monotonic clock, for clients that
// report a deadline as time.Time. It is meaningless on a clock of the caller's.
func (r *Recorder) At(instant time.Time) time.Duration { return instant.Sub(r.origin) }

// Client returns the recorder of a new client. Clients are numbered from 0.
func (r *Recorder) Client() *ClientRecorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &ClientRecorder{recorder: r, number: len(r.clients)}
	r.clients = append(r.clients, c)
	return c
}

// History returns what was recorded so far, ordered by invocation. Calls that
// have no answer yet are unknown and complete Never.
func (r *Recorder) History() History {
	r.mu.Lock()
	clients := slices.Clone(r.clients)
	r.mu.Unlock()
	var h History
	for _, c := range clients {
		c.mu.Lock()
		h = append(h, c.events...)
		c.mu.Unlock()
	}
	slices.SortStableFunc(h, func(a, b CallRecord) int { return cmp.Compare(a.Invoke, b.Invoke) })
	return h
}

// ClientRecorder is one client's buffer. Calls may overlap and may be answered on any
// goroutine.
type ClientRecorder struct {
	recorder *Recorder
	number   int

	mu     sync.Mutex // contended only if the client's own calls overlap
	events []CallRecord
}

// PendingCall is one request waiting for its answer. Exactly one of its methods is to
// be called; a call without an answer stays unknown.
type PendingCall struct {
	client *ClientRecorder
	index  int
}

// Begin records that a request is about to leave. token is the caller's, or ""
// when the server chooses one.
func (c *ClientRecorder) Begin(op OpKind, key, token string) PendingCall {
	invoke := c.recorder.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, CallRecord{
		Client: c.number, Op: op, Key: key, Token: token,
		Invoke: invoke, Complete: Never, Outcome: Unknown,
	})
	return PendingCall{client: c, index: len(c.events) - 1}
}

// AsReader marks an acquire as a reader's.
func (c PendingCall) AsReader() PendingCall { return c.mark(func(e *CallRecord) { e.Shared = true }) }

// OfPermits marks an acquire as one of so many permits.
func (c PendingCall) OfPermits(limit int) PendingCall {
	return c.mark(func(e *CallRecord) { e.Limit = limit })
}

func (c PendingCall) mark(as func(*CallRecord)) PendingCall {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	as(&c.client.events[c.index])
	return c
}

// Granted: an acquire or an extend succeeded, and the client relies on the lock
// for validity from now. fence is 0 for an extend and where there is none.
func (c PendingCall) Granted(token string, validity time.Duration, fence int64) {
	c.finish(func(e *CallRecord) { e.Outcome, e.Token, e.Validity, e.Fence = OK, token, validity, fence })
}

// GrantedUntil is Granted for a client that has its deadline on the
// recorder's clock.
func (c PendingCall) GrantedUntil(token string, deadline time.Duration, fence int64) {
	c.finish(func(e *CallRecord) { e.Outcome, e.Token, e.Validity, e.Fence = OK, token, deadline-e.Complete, fence })
}

// Released: a release was answered, with 1 (true) or 0.
func (c PendingCall) Released(released bool) {
	c.finish(func(e *CallRecord) { e.Outcome, e.Released = OK, released })
}

// Refused: an acquire or an extend was answered "no".
func (c PendingCall) Refused() { c.finish(func(e *CallRecord) { e.Outcome = No }) }

// Unknown: an error, a time-out or a cut connection; the call may have taken
// effect or may yet do so.
func (c PendingCall) Unknown() { c.finish(func(*CallRecord) {}) }

func (c PendingCall) finish(answer func(*CallRecord)) {
	complete := c.client.recorder.now()
	c.mark(func(e *CallRecord) {
		e.Complete = complete
		answer(e)
	})
}
