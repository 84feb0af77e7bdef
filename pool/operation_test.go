package pool

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"redlockd/pool/wire"
)

func TestReply_MomentWritesNumbersAsDigits(t *testing.T) {
	var m SendContext
	for _, n := range []int64{0, 0, 7, 7, -3, math.MaxInt64, 0, 7} {
		if got := m.Decimal(n); got != strconv.FormatInt(n, 10) {
			t.Errorf("Decimal(%d) = %q", n, got)
		}
	}
	if s := m.Decimal(12); strings.TrimSpace(s) != "12" {
		t.Errorf("%q", s)
	}
}

// FuzzReply: a flush settles whatever a lying master answers, every operation
// is answered, and nothing that is not a good seal counts.
func FuzzReply(f *testing.F) {
	f.Add([]byte{2, 2, 'O', 'K', 2, 1, '5', 1, 0, 0, 7, 2, 2, 1, '1', 2, 1, '2'}, false)
	f.Add([]byte{}, true)
	f.Add([]byte("MMMMMMM"), true) // counts of listeners
	f.Fuzz(func(t *testing.T, data []byte, beat bool) {
		s := newFlushStage()
		fl, op := s.flush, acquiring("key")
		fl.entries = []queueEntry{{op: op, props: op.plan, fence: 1}}
		fl.sealed, fl.beat, fl.readSettings, fl.raise = true, beat, beat, 1000
		fl.write()
		fl.replies = nil
		for range fl.commands {
			fl.replies = append(fl.replies, anyReply(&data, 0))
		}
		s.conn.finishFlush(s.flush)
		if len(op.answers[0]) != 1 {
			t.Fatalf("answered %d times", len(op.answers[0]))
		}
		if a := op.answers[0][0]; a.Seal.Good {
			score, ok := fl.replies[fl.sealAt].Number()
			_, isTime := wire.ParseTime(fl.replies[fl.timeAt])
			if !ok || !isTime || fl.replies[fl.sealAt+1].Err != nil || a.Seal.Old != score || a.Seal.Top < score {
				t.Fatalf("%+v under %+v", a.Seal, fl.replies[fl.sealAt:])
			}
		}
	})
}
