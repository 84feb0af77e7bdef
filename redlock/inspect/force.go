// forceCall releases a lock regardless of its holder.
//
// It first queries the masters for the holders. Then it releases each holder by its token, as
// the holder itself would. So a client that takes the key meanwhile loses no part of it, and
// nothing is deleted that is not a lock. A master that does not answer receives the release
// later, by token as well.

package inspect

import (
	"slices"
	"sync"

	"redlockd/redlock/engine"
	"redlockd/redlock/lease"
)

// ForceRequest releases a lock regardless of its holder.
type ForceRequest struct {
	DB  int
	Key engine.Key
	By  lease.Requester // for the log
}

// Force answers true if the key had holders, or may have had some, and none of them holds it
// any more. It releases every holder that is found, even if too few masters for a quorum show
// it. False means that the key had no holder. If that is not known, because too few masters
// remember every holder, the error is *NoQuorum.
func (ir *Inspector) Force(r ForceRequest, done func(bool, error)) {
	if err := ir.engine.Enter(); err != nil {
		done(false, err)
		return
	}
	f := &forceCall{inspector: ir, request: r, done: done}
	ir.readLock(r.DB, r.Key, f.onView)
}

// maxForceRounds bounds how often the masters are queried for further holders, because they do
// not report all holders at once.
const maxForceRounds = 64

// forceCall is the release of every holder that is found.
type forceCall struct {
	inspector *Inspector
	request   ForceRequest
	done      func(bool, error)
	rounds    int
	more      bool // the masters have more holders than they reported
	unseen    bool // too few masters would have shown every holder; see LockView
	masters   []LockOnMaster

	mu       sync.Mutex
	open     int // releases without an answer
	released bool
	failed   error
}

// onView takes the masters' answer about the holders.
func (f *forceCall) onView(v LockView, err error) {
	var tokens []engine.Token
	f.more, f.unseen, f.masters = false, v.unseen, v.Masters
	for i := range v.Masters {
		m := &v.Masters[i]
		f.more = f.more || m.Count > len(m.holders)
		for _, h := range m.holders {
			tokens = append(tokens, h.at.token)
		}
	}
	slices.Sort(tokens)
	f.rounds++
	switch {
	case err == nil && len(tokens) > 0:
		f.release(slices.Compact(tokens))
	case err == nil && v.State == LockForeign:
		f.finish(engine.ErrWrongType)
	default:
		f.finish(err)
	}
}

func (f *forceCall) release(tokens []engine.Token) {
	l, r := f.inspector, &f.request
	f.open = len(tokens)
	var shown []string
	for _, token := range tokens[:min(len(tokens), maxListedHolders)] {
		shown = append(shown, token.ShortHash())
	}
	l.logger.Warn("lock released by force", "key", string(r.Key), "db", r.DB, "holders", len(tokens), "tokens", shown,
		"client", r.By.Addr, "name", r.By.Name, "user", r.By.User)
	var batch engine.Batch
	for _, token := range tokens {
		id := engine.LeaseID{DB: r.DB, Key: r.Key, Token: token}
		l.leases.ReleaseForced(&batch, id, f.answered) // each release leaves by itself
	}
	batch.Send()
}

// answered takes the outcome of one release.
func (f *forceCall) answered(released bool, err error) {
	f.mu.Lock()
	f.released = f.released || released
	if err != nil {
		f.failed = err
	}
	f.open--
	last := f.open == 0
	f.mu.Unlock()
	switch {
	case !last:
	case f.more && f.failed == nil && f.rounds < maxForceRounds:
		f.inspector.readLock(f.request.DB, f.request.Key, f.onView)
	default:
		f.finish(f.failed)
	}
}

func (f *forceCall) finish(err error) {
	l := f.inspector
	if err == nil && !f.released && f.unseen {
		err = l.engine.NoQuorum(missing(f.masters, true), "who holds it is not known")
	}
	l.engine.Leave()
	f.done(f.released && err == nil, err)
}
