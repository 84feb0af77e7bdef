package pool

import "testing"

func joining(op *asker) *asker {
	op.plan.SharesKey = true
	return op
}

// Holders of one key together need not wait for one another's flush; an exclusive
// acquire waits, and so does everything behind it.
func TestFlush_AcquiresThatJoinShareOneWithEachOtherAndWithReleases(t *testing.T) {
	for _, of := range []struct {
		what string
		ops  []*asker
		want int // operations in the first flush
	}{
		{"two readers and a release", []*asker{joining(acquiring("k")), joining(acquiring("k")), joining(releasing("k"))}, 3},
		{"a reader, then the writer", []*asker{joining(acquiring("k")), acquiring("k")}, 1},
		{"the writer, then a reader", []*asker{acquiring("k"), joining(acquiring("k"))}, 1},
		{"the writer, then a release", []*asker{acquiring("k"), joining(releasing("k"))}, 1},
		{"a reader, then a release that does not join", []*asker{joining(acquiring("k")), releasing("k")}, 1},
		{"two writers of two keys", []*asker{acquiring("k"), acquiring("j")}, 2},
	} {
		stage := newFlushStage()
		if got := stage.flush.fill(queueOf(of.ops...), 100); got != of.want {
			t.Errorf("%s: %d in one flush, want %d", of.what, got, of.want)
		}
	}
}

func TestFlush_RaisesTheRegisterAheadForWhoWantsIt(t *testing.T) {
	stage := newFlushStage()
	ahead := &asker{plan: Props{Sealed: true, SealOnly: true, RaiseBy: 500}}
	stage.flush.fill(queueOf(&asker{plan: Props{Sealed: true}}, ahead, &asker{plan: Props{Sealed: true, RaiseBy: 20}}), 100)
	if got := stage.flush.ahead; got != 500 {
		t.Errorf("raised by %d µs ahead of the clock, want 500", got)
	}
	stage.conn.spare = append(stage.conn.spare, stage.flush)
	stage.conn.emptyFlush()
	if got := stage.flush.ahead; got != 0 {
		t.Errorf("the next flush is still %d µs ahead", got)
	}
}
