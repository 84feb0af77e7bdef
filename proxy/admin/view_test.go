package admin

import (
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock"
)

// A master that is gone is dialled again and again: the table shows one outage.
func TestMasterRow_ShowsTheWholeOutage(t *testing.T) {
	w, noon := &watch{}, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	poll := func(state, detail string, since time.Duration, at time.Time) map[string]any {
		_, rows := w.poll([]redlock.MasterReport{{Status: pool.Status{Name: "m", State: state, Detail: detail, Since: since}}}, 0, at)
		return rows[0]
	}
	poll("down", "connection refused, 1s ago", time.Second, noon)
	if row := poll("dialing", "", 0, noon.Add(time.Minute)); row["since"] != int64(61_000) || row["detail"] != "connection refused" {
		t.Errorf("the table shows %v", row)
	}
}

func TestWaitedFor_DescribesLocksByTheirNotes(t *testing.T) {
	reader := lookingAt()
	reader.note = &redlock.Note{Meta: "nightly run", Name: "worker-7", Client: "10.0.0.9:1"}
	locks := waitedFor([]redlock.Key{"free", "invoices"}, []redlock.LockView{{}, reader.view("invoices", 7)})
	if len(locks) != 2 || locks[0].Holders != "" || locks[1].Key != "invoices" || locks[1].Holders != "nightly run (worker-7 10.0.0.9:1)" || locks[1].Fence != 7 {
		t.Errorf("%+v", locks)
	}
	if locks := waitedFor([]redlock.Key{"invoices"}, nil); len(locks) != 0 {
		t.Errorf("a page that has gone: %+v", locks)
	}
}

func TestLockRow_ShowsUndecidedAndPermits(t *testing.T) {
	v := lookingAt().view("k", 7)
	v.Mode, v.Limit, v.Count = redlock.Permits, 12, 5
	if row := lockRow("k", &v); row["mode"] != "permits 5 of 12" || row["fence"] != "7" {
		t.Errorf("%v", row)
	}
	if row := lockRow("k", &redlock.LockView{State: redlock.LockUndecided}); row["mode"] != "undecided" || row["fence"] != "" {
		t.Errorf("%v", row)
	}
	if row := lockRow("k", &redlock.LockView{}); row != nil {
		t.Errorf("a free key is %v", row)
	}
}
