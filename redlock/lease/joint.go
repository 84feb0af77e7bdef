// Join makes one lock of exclusive locks of keys in several groups of masters.
//
// Each part is a lock in its group, all with one token, none of which waits while another is held.
// So every key is held as ever: by a quorum of the group that it belongs to. The fence of the
// whole is the highest one of a part. In each other group, one more seal raises the registers of
// the part's voters to it, until it lies in the intervals of a quorum there, too. That is the
// interval rule (quorum/fence.go) with its further seal, in every group: the fence exceeds all that
// were granted before for any of the keys, and later grants find it.

package lease

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// maxFenceDrag is how far ahead of its clock one group may raise the registers of another one. A
// master that lost its memory begins 500 ms ahead of its clock, which may be off by as much.
const maxFenceDrag = time.Second

// Part is one of the locks that are to be one.
type Part struct {
	Leases *Leases
	Grant  Grant
}

// joint is a lock of several parts.
type joint struct {
	request *LockRequest
	parts   []*Part
	fence   engine.Fence
	done    LockDone

	mu     sync.Mutex
	open   int // parts whose registers are being raised
	failed error
}

// Join calls done once: with one grant of all keys of the request, or with an error once all parts
// are being given back.
func Join(r *LockRequest, parts []*Part, done LockDone) {
	j := &joint{request: r, parts: parts, done: done, open: 1}
	for _, p := range parts {
		j.fence = max(j.fence, p.Grant.Fence)
	}
	for _, p := range parts {
		if p.Grant.Fence < j.fence {
			j.mu.Lock()
			j.open++
			j.mu.Unlock()
			p.raiseFence(j.fence, j.onRaised)
		}
	}
	j.onRaised(nil)
}

// onRaised takes the outcome of one part; the last one completes the lock.
func (j *joint) onRaised(err error) {
	j.mu.Lock()
	j.failed = cmp.Or(j.failed, err)
	j.open--
	open, failed := j.open, j.failed
	j.mu.Unlock()
	if open > 0 {
		return
	}
	r, g := j.request, j.parts[0].Grant
	fresh := true
	for _, p := range j.parts {
		if fresh = fresh && p.Grant.Fresh; p.Grant.Until() < g.Until() {
			g = p.Grant
		}
	}
	g.Key, g.More, g.Fence, g.Fresh, g.ballot, g.made = r.Key, r.More, j.fence, fresh, j, nil
	if failed == nil && g.Left() <= 0 {
		failed = g.ExpiredError()
	}
	if failed != nil {
		GiveBackParts(j.parts)
		j.done(Grant{}, failed)
		return
	}
	for _, p := range j.parts {
		p.join(r, j.fence)
	}
	j.done(g, nil)
}

// PartsOf are the parts of a joint lock; nil = it is of one group.
func PartsOf(g *Grant) []*Part {
	if j, ok := g.ballot.(*joint); ok {
		return j.parts
	}
	return nil
}

// GiveBackParts gives back the parts of a lock that is not to be. What a token held before stays.
func GiveBackParts(parts []*Part) {
	for _, p := range parts {
		p.Leases.Undelivered(p.Grant)
	}
}

func (j *joint) takeBack()                { GiveBackParts(j.parts) }
func (j *joint) tokenOf(int) engine.Token { return j.parts[0].Grant.Token }

// join announces a part, with the fence of the whole.
func (p *Part) join(r *LockRequest, fence engine.Fence) {
	l := p.Leases
	now := l.engine.Recent()
	p.Grant.Fence, p.Grant.part = fence, false
	for _, id := range p.Grant.Leases() {
		if known, ok := l.records.update(id, func(known *leaseRecord) { known.fence = fence }); ok {
			l.announce(r, id, known, now)
		}
	}
}

// raiseFence makes a fence that is above the grant's own one its fence; done is called once.
func (p *Part) raiseFence(fence engine.Fence, done func(error)) {
	l, a := p.Leases, p.Grant.ballot.(*lockBallot)
	ahead := int64(fence) - a.ballot.Group.Time()
	if drag := time.Duration(ahead) * time.Microsecond; drag > maxFenceDrag {
		done(fmt.Errorf("the fences of two groups are %d ms apart, %d are allowed: synchronise the clocks of their masters; what was taken is given back",
			drag.Milliseconds(), maxFenceDrag.Milliseconds()))
		return
	}
	a.ballot.Lock()
	f := &fenceRaise{leases: l, ballot: a, fencing: a.fencing, fence: int64(fence), done: done}
	a.ballot.Unlock()
	var lanes []int
	for lane := range a.ballot.Tally.N {
		if f.fencing.Voter(lane).Incarnation != "" {
			lanes = append(lanes, lane)
		}
	}
	f.open = len(lanes)
	l.engine.EnterAlways()
	engine.RaiseRegisters(a.ballot.Group, int64(fence), lanes, f.onSeal)
}

// fenceRaise raises the registers of a grant's voters to a fence.
type fenceRaise struct {
	leases *Leases
	ballot *lockBallot
	fence  int64
	done   func(error)

	mu      sync.Mutex
	fencing quorum.Fencing
	open    int // voters that have not answered
	over    bool
}

func (f *fenceRaise) onSeal(lane int, seal pool.Seal) {
	f.mu.Lock()
	f.open--
	f.fencing.Raised(engine.IntervalOf(lane, seal), seal.Good)
	fits := f.fencing.Containing(f.fence) >= f.ballot.ballot.Tally.Quorum
	over := !f.over && (fits || f.open == 0)
	f.over = f.over || over
	f.mu.Unlock()
	if !over {
		return
	}
	f.leases.engine.Leave()
	if fits {
		f.done(nil)
		return
	}
	f.done(f.ballot.ballot.NoQuorum("a quorum said yes in every group, but no common fence could be had in time; what was taken is given back"))
}
