package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// faults are what may happen to a master between two steps of the property below.
var faults = []func(r *rand.Rand, m *fakeMaster){
	func(_ *rand.Rand, m *fakeMaster) { m.hangs = true },
	func(_ *rand.Rand, m *fakeMaster) { m.cut = true },
	func(_ *rand.Rand, m *fakeMaster) { m.cutAfter = true },
	func(r *rand.Rand, m *fakeMaster) { m.takes = time.Duration(r.Int64N(int64(250 * time.Millisecond))) },
	func(r *rand.Rand, m *fakeMaster) {
		m.ahead += time.Duration(r.Int64N(int64(time.Second))) - time.Second/2
	},
	func(_ *rand.Rand, m *fakeMaster) { m.identity = "" },
	func(_ *rand.Rand, m *fakeMaster) { m.register /= 2 },
	func(_ *rand.Rand, m *fakeMaster) { m.identity, m.register, m.runID = "", 0, m.runID+"0" },
	func(_ *rand.Rand, m *fakeMaster) { m.forbidden = errCut },
	func(_ *rand.Rand, m *fakeMaster) { falsify("SET", refusal("NOSCRIPT gone"))(m) },
	func(_ *rand.Rand, m *fakeMaster) { falsify("ZADD", refusal("READONLY replica"))(m) },
	func(_ *rand.Rand, m *fakeMaster) { falsify("TIME", Reply{})(m) },
	func(_ *rand.Rand, m *fakeMaster) { m.resize = func(r []Reply) []Reply { return r[:len(r)/2] } },
}

func repairMaster(_ *rand.Rand, m *fakeMaster) {
	m.hangs, m.cut, m.cutAfter, m.takes = false, false, false, 0
	m.forbidden, m.tamper, m.resize = nil, nil, nil
}

// question is an operation and how often each lane must answer it.
type question struct {
	op   *asker
	want [9]int
}

func TestAnswers_EveryLaneAnswersEveryOperationExactlyOnceWhateverHappens(t *testing.T) {
	const n = 5
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 11))
				s := newStage(t, n, Options{MaxFlush: 1 + r.IntN(6), MaxQueue: 20, MaxPendingReleases: 8, MaxTTL: time.Second})
				var asked []*question
				for range 120 {
					if r.IntN(3) == 0 {
						f := repairMaster
						if r.IntN(3) > 0 {
							f = faults[r.IntN(len(faults))]
						}
						s.change(r.IntN(n), func(m *fakeMaster) { f(r, m) })
					}
					asked = append(asked, s.ask(r)...)
					if r.IntN(2) == 0 {
						synctest.Wait()
					}
					if r.IntN(2) == 0 {
						s.clock.advance(time.Duration(r.Int64N(int64(150 * time.Millisecond))))
					}
				}
				if seed%2 == 0 { // otherwise it closes in the middle of everything
					for lane := range n {
						s.change(lane, func(m *fakeMaster) { repairMaster(nil, m) })
					}
					s.clock.advance(5 * time.Second)
				}
				s.pool.Close()
				synctest.Wait()
				for i, q := range asked {
					for lane := range n {
						if got := len(q.op.answers[lane]); got != q.want[lane] {
							t.Errorf("operation %d %+v: lane %d answered %d times, want %d", i, q.op.plan, lane, got, q.want[lane])
						}
					}
				}
			})
		})
	}
}

// ask queues a few operations, on all lanes or on one, and perhaps a pending release.
func (s *stage) ask(r *rand.Rand) (out []*question) {
	var b Batch
	for range r.IntN(5) {
		key := string(rune('a' + r.IntN(8)))
		q := &question{op: acquiring(key)}
		switch r.IntN(5) {
		case 0:
			q.op = releasing(key)
		case 1:
			q.op = releasing(key)
			q.op.words = []string{"ZERO"}
		case 2:
			q.op = &asker{plan: Props{Sealed: true, SealOnly: true}}
		case 3:
			q.op.skip = r.IntN(3) == 0
		}
		out = append(out, q)
		if r.IntN(4) == 0 {
			lane := r.IntN(len(s.masters))
			q.want[lane] = 1
			s.group.Push(lane, q.op)
			continue
		}
		for lane := range s.masters {
			q.want[lane] = 1
		}
		b.Add(s.group, q.op)
	}
	b.Send()
	if r.IntN(6) == 0 {
		s.group.RetryRelease(r.IntN(len(s.masters)), PendingRelease{Args: []string{"DEBT"}, Until: s.clock.Now() + time.Second})
	}
	return out
}
