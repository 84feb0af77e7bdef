package redlock

// readlock_test.go: what is shown of a lock, and of its holders.

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// see looks at a lock.
func (d *daemon) see(key Key) LockView {
	d.t.Helper()
	v, err := d.tryToSee(key)
	if err != nil {
		d.t.Fatalf("looking at %q: %v", key, err)
	}
	return v
}

func (d *daemon) tryToSee(key Key) (LockView, error) {
	d.t.Helper()
	type seen struct {
		view LockView
		err  error
	}
	answer := make(chan seen, 1)
	d.ReadLock(0, key, func(v LockView, err error) { answer <- seen{v, err} })
	a := receive(d.t, answer)
	return a.view, a.err
}

// tokensOf of the holders, in order.
func tokensOf(v LockView) string {
	var all []string
	for _, h := range v.Holders {
		all = append(all, string(h.Token))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestReadLock_ShowsTheHoldersOfEveryMode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d, other := c.daemon(), c.daemon()
	if v := d.see("k"); v.State != LockFree || len(v.Holders) != 0 || v.Count != 0 || v.Left != 0 {
		t.Errorf("a key that nobody holds: %+v", v)
	}
	for _, of := range []struct {
		requests []LockRequest
		mode     Kind
		limit    int
	}{
		{[]LockRequest{{Token: tokenA}}, Exclusive, 0},
		{[]LockRequest{{Token: tokenA, Mode: Readers}, {Token: tokenB, Mode: Readers, TTL: 20 * time.Second}}, Shared, 0},
		{[]LockRequest{{Token: tokenA, Mode: PermitsOf(3)}, {Token: tokenB, Mode: PermitsOf(3), TTL: 20 * time.Second}}, Permits, 3},
		{[]LockRequest{{Token: tokenA, More: []Key{"z"}}}, Exclusive, 0},
	} {
		var want []string
		var fence Fence
		for _, r := range of.requests {
			r.Key = "k"
			g := d.get(r)
			fence = max(fence, g.Fence)
			want = append(want, string(r.Token))
		}
		v := other.see("k")
		if v.State != LockHeld || v.Mode != of.mode || v.Limit != of.limit || v.Count != len(want) || tokensOf(v) != strings.Join(want, " ") {
			t.Errorf("%+v: seen as %+v", of.requests, v)
		}
		slots := map[int]bool{}
		for i, h := range v.Holders {
			if !h.Confirmed || h.Votes != 3 || h.Left <= 0 || h.Left > long+2*quorum.ExpiryGrain*time.Millisecond || h.Note != nil || h.Fence != 0 {
				t.Errorf("%v: holder %+v, whose fence only the other daemon knows", of.mode, h)
			}
			if i > 0 && h.Left > v.Holders[i-1].Left {
				t.Errorf("%v: the longest is not the first: %+v", of.mode, v.Holders)
			}
			slots[h.Slot] = true
		}
		if of.mode == Permits && (len(slots) != 2 || slots[0]) {
			t.Errorf("slots %v of two permits", slots)
		}
		if own := d.see("k"); !slices.ContainsFunc(own.Holders, func(h Holder) bool { return h.Fence == fence }) {
			t.Errorf("%v: the daemon that granted fence %d shows %+v", of.mode, fence, own.Holders)
		}
		for i, m := range v.Masters {
			if m.Master != name(i) || !m.Known || m.Quarantined || m.State != LockHeld || m.Mode != of.mode || m.Count != len(want) || m.Token != tokenA {
				t.Errorf("%v on master %s: %+v", of.mode, name(i), m)
			}
		}
		for _, token := range want {
			d.free("k", Token(token))
		}
	}
}

// A lease ends before its copies do: by the master timeout.
func TestReadLock_TimesAreThoseOfTheLeaseAndNeverZero(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", TTL: 20 * time.Second})
	if left := d.see("k").Left; left > 20*time.Second+2*quorum.ExpiryGrain*time.Millisecond || left <= 0 {
		t.Errorf("%v are left of 20 s", left)
	}
	for i := range c.servers { // less than the master timeout is left, and the copies are there
		c.do(i, "PEXPIRE", "k", late.Milliseconds()/2)
	}
	if v, err := d.tryToSee("k"); err == nil && v.State == LockHeld && v.Left != time.Millisecond {
		t.Errorf("%v are left of the last half of a master timeout, want 1 ms", v.Left)
	}
}

func TestReadLock_AStrayCopyIsShownWithItsMasterAndHoldsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	c.do(1, "SET", "k", string(tokenB), "PX", 20_000)
	v := d.see("k")
	if v.State != LockFree || len(v.Holders) != 0 || v.Count != 0 {
		t.Errorf("one copy of three: %+v", v)
	}
	if m := v.Masters[1]; m.State != LockHeld || m.Token != tokenB || m.Left <= 0 || v.Masters[0].State != LockFree {
		t.Errorf("its master: %+v", m)
	}
}

// Two of three masters hold the lock, one of them is down: nobody else can say
// whether the third vote was there.
func TestReadLock_IsUndecidedWhereTheMastersThatCouldTellAreMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Token: tokenA})
	c.do(2, "DEL", "k")
	c.servers[0].Kill()
	d.await(0, "down")
	v := d.see("k")
	if v.State != LockUndecided || tokensOf(v) != string(tokenA) || v.Holders[0].Confirmed || v.Holders[0].Votes != 1 {
		t.Errorf("%+v", v)
	}
	if m := v.Masters[0]; m.Known || m.Reason == "" {
		t.Errorf("the master that is down: %+v", m)
	}
	c.servers[1].Kill()
	d.await(1, "down")
	_, err := d.tryToSee("k")
	noQuorum(t, err, "who holds the lock is unknown")
}

// A master that has lost its memory shows nothing, which proves nothing.
func TestReadLock_AQuarantinedMasterThatShowsNothingProvesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Token: tokenA})
	c.do(2, "DEL", "k")
	c.servers[1].RestartEmpty()
	d.awaitProcess(1, c.servers[1])
	eventually(t, "the quarantined master is read", func() bool { return d.see("k").Masters[1].Known })
	v := d.see("k")
	if v.State != LockUndecided || tokensOf(v) != string(tokenA) || !v.Masters[1].Quarantined || v.Masters[1].Reason == "" {
		t.Errorf("%+v", v)
	}
	c.do(1, "SET", "k", string(tokenA), "PX", 20_000) // what it shows it cannot have forgotten
	if v := d.see("k"); v.State != LockHeld || v.Holders[0].Votes != 2 {
		t.Errorf("with a copy on the quarantined master: %+v", v)
	}
}

func TestReadLock_CopiesOfTwoKindsDoNotAddUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	d.get(LockRequest{Key: "k", Token: tokenA, Mode: Readers})
	c.do(0, "DEL", "k")
	c.do(1, "DEL", "k")
	c.do(1, "SET", "k", string(tokenA), "PX", 20_000)
	if v := d.see("k"); v.State != LockFree {
		t.Errorf("a reader on one master and the writer on another: %+v", v)
	}
}

func TestReadLock_OtherDataIsForeign(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	for _, data := range [][]any{
		{"SET", "k", "for ever"}, {"SET", "k", strings.Repeat("x", 2000), "PX", 20_000}, {"RPUSH", "k", "x"}, {"HSET", "k", "f", "v"}, {"ZADD", "k", 1, "m"},
	} {
		for i := range c.servers {
			c.do(i, "DEL", "k")
			c.do(i, data...)
		}
		if v := d.see("k"); v.State != LockForeign || len(v.Holders) != 0 || v.Masters[0].State != LockForeign {
			t.Errorf("%.30v: %+v", data, v)
		}
	}
}

// There is room for a thousand of them; how many there are is told all the same.
func TestReadLock_OfTooManyReadersTheLongestAreShownAndAllAreCounted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	ends := time.Now().Add(20 * time.Second).UnixMilli()
	for i := range c.servers {
		words := []any{"ZADD", "k"}
		for n := range 1500 {
			words = append(words, ends-int64(n), fmt.Sprint("reader-nr-", n))
		}
		c.do(i, words...)
		c.do(i, "PEXPIREAT", "k", ends)
	}
	v := d.see("k")
	if v.State != LockHeld || v.Count != 1500 || len(v.Holders) != 1000 || v.Holders[0].Token != "reader-nr-0" {
		t.Errorf("%d counted, %d listed, the first is %v", v.Count, len(v.Holders), v.Holders[:1])
	}
}

func TestReadLock_ShowsTheHoldersNoteAndNothingAfterItsRelease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d, other := c.daemon(), c.daemon()
	g := d.get(LockRequest{Key: "k", Requester: &Requester{Meta: "build 7 of\x00 \xff", Addr: "10.0.0.9:55 5", Name: "worker"}})
	quiet := d.get(LockRequest{Key: "quiet"})
	var v LockView
	eventually(t, "the note is on the masters", func() bool { v = other.see("k"); return v.Holders[0].Note != nil })
	n := v.Holders[0].Note
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if n.Meta != "build 7 of\x00 \xff" || n.Client != "10.0.0.9:55 5" || n.Name != "worker" || n.Daemon != fmt.Sprintf("%s/%d", host, os.Getpid()) || v.Holders[0].Fence != g.Fence {
		t.Errorf("%+v of %+v", n, v.Holders[0])
	}
	for i := range c.servers {
		lock, note := c.ends(i, "k"), c.ends(i, "redlockd:meta:k")
		if note < lock-2*late.Milliseconds() || note > lock+2*late.Milliseconds() {
			t.Errorf("on %s the note ends %d ms after the lock", name(i), note-lock)
		}
	}
	if keys := c.servers[0].Keys(); slices.Contains(keys, "redlockd:meta:quiet") {
		t.Errorf("a lock without META has left %q", keys)
	}
	if text := fmt.Sprint(c.do(0, "HGETALL", "redlockd:meta:k")); strings.Contains(text, string(g.Token)) {
		t.Errorf("the note gives the token away: %s", text)
	}
	d.free("k", g.Token)
	d.free("quiet", quiet.Token)
}

func TestNotes_GoWithTheReleaseAndMoveWithTheExtension(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	g := d.get(LockRequest{Key: "k", More: []Key{"z"}, Requester: &Requester{Meta: "both"}, TTL: 10 * time.Second})
	d.idle()
	before := c.ends(0, "redlockd:meta:z")
	if _, err := d.prolongAll(g.Token, 25*time.Second, "k", "z"); err != nil {
		t.Fatal(err)
	}
	d.idle()
	for i := range c.servers {
		for _, key := range []string{"redlockd:meta:k", "redlockd:meta:z"} {
			if after := c.ends(i, key); after < before+10_000 {
				t.Errorf("%s on %s ends at %d, was %d", key, name(i), after, before)
			}
		}
	}
	d.free("k", g.Token)
	d.free("z", g.Token)
	d.idle()
	if !c.empty(0, 1, 2) {
		t.Errorf("left behind: %q", c.servers[0].Keys())
	}
}

// A note of a lock that has no end would have none either, and who deletes the lock
// names no token by which it is found.
func TestNotes_AreNotKeptOfALockWithoutAnExpiry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon(lockInfo)
	if _, err := d.ask(LockRequest{Key: "k", Token: "my own value", TTL: Endless, Mode: Valued}); err != nil {
		t.Fatal(err)
	}
	d.idle()
	if was, err := d.write(WriteRequest{Key: "k", EndlessToo: true}); !was || err != nil {
		t.Fatalf("deleted: %v, %v", was, err)
	}
	d.idle()
	if !c.empty(0, 1, 2) {
		t.Errorf("left behind: %q", c.servers[0].Keys())
	}
}

func TestNotes_AreKeptOfEveryHolderWithLockInfo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d, other := c.daemon(lockInfo), c.daemon()
	g := d.get(LockRequest{Key: "k", Requester: &Requester{Addr: "10.0.0.9:1"}})
	eventually(t, "the note is on the masters", func() bool { return other.see("k").Holders[0].Note != nil })
	if h := other.see("k").Holders[0]; h.Note.Client != "10.0.0.9:1" || h.Note.Meta != "" || h.Fence != g.Fence {
		t.Errorf("%+v, %+v", h, h.Note)
	}
	d.free("k", g.Token)
	if !c.empty(0, 1, 2) {
		t.Errorf("left behind: %q", c.servers[0].Keys())
	}
}

// Nothing is stored for it. Another daemon cannot know the client, nor where the client chose the token.
func TestReadLock_ShowsWhoTookALockWithoutANote(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d, other := c.daemon(), c.daemon()
	client := &Requester{ID: 7, Addr: "10.0.0.9:1", Name: "worker", User: "anna", LibName: "lib", LibVer: "2"}
	hold, own := d.get(LockRequest{Key: "hold", Hold: &HoldTerms{OnEnd: func(Grant, error, time.Duration) {}}, Requester: client}), d.get(LockRequest{Key: "own", Requester: client})
	if _, err := d.ask(LockRequest{Key: "set", Token: "my own value", TTL: long, Mode: Valued, Requester: client}); err != nil {
		t.Fatal(err)
	}
	if n := d.HeldBy(); n[7] != 3 || len(n) != 1 {
		t.Errorf("the clients hold %v", n)
	}
	if _, err := other.prolongAll(own.Token, long, "own"); err != nil { // its daemon stays what it was
		t.Fatal(err)
	}
	for key, holds := range map[Key]bool{"hold": true, "own": false, "set": false} {
		h := d.see(key).Holders[0]
		want := Note{Daemon: pool.DaemonName(), Client: "10.0.0.9:1", Name: "worker", User: "anna", Library: "lib 2"}
		if h.Note == nil || *h.Note != want || h.Hold != holds || h.Held <= 0 || h.Held > time.Hour || h.Fence == 0 {
			t.Errorf("%s: %+v, %+v", key, h, h.Note)
		}
		h = other.see(key).Holders[0]
		switch {
		case key == "set" && h.Note != nil, key != "set" && (h.Note == nil || *h.Note != Note{Daemon: pool.DaemonName()}), h.Hold:
			t.Errorf("%s at another daemon: %+v, %+v", key, h, h.Note)
		}
	}
	if keys := fmt.Sprint(c.servers[0].Keys()); strings.Contains(keys, "redlockd:meta:") {
		t.Errorf("a master has notes: %s", keys)
	}
	d.free("hold", hold.Token)
	d.free("own", own.Token)
	if n := d.HeldBy(); n[7] != 1 {
		t.Errorf("the clients hold %v", n)
	}
}

func TestWaiting_ShowsEveryWaiterWithItsKeysAndTimes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	d := c.daemon()
	held := d.get(LockRequest{Key: "k"})
	answers := make(chan error, 4) // one for each wait
	var leaves []func()
	wait := func(r LockRequest) {
		r.TTL = long
		leaves = append(leaves, d.Wait(nil, r, func(_ Grant, err error) { answers <- err }))
	}
	wait(LockRequest{Key: "k", Wait: time.Minute, Requester: &Requester{ID: 7, Addr: "10.0.0.9:1", Name: "first", User: "default"}})
	wait(LockRequest{Key: "k", Wait: 2 * time.Minute, Mode: Readers, Requester: &Requester{ID: 8}})
	wait(LockRequest{Key: "k", More: []Key{"z"}, Wait: time.Minute, Requester: &Requester{ID: 9}})
	eventually(t, "all of them wait", func() bool { return d.see("k").Waiters == 3 })
	any := func(Key) bool { return true }
	list, all := d.Waiting(0, any, 10)
	if all != 3 || len(list) != 3 || list[0].Requester != (Requester{ID: 7, Addr: "10.0.0.9:1", Name: "first", User: "default"}) || list[0].Place != 1 {
		t.Errorf("%d: %+v", all, list)
	}
	for i := range list {
		w := &list[i]
		want := time.Minute
		if w.Requester.ID == 8 {
			want = 2 * time.Minute
		}
		if w.Left <= 0 || w.Since < 0 || w.Since == 0 || w.Since+w.Left != want || (w.Mode == Shared) != (w.Requester.ID == 8) || len(w.Keys) != 1+(map[int64]int{9: 1})[w.Requester.ID] {
			t.Errorf("%+v", *w)
		}
	}
	if list, all := d.Waiting(0, any, 1); all != 3 || len(list) != 1 || list[0].Requester.ID != 7 {
		t.Errorf("with room for one: %d, %+v", all, list)
	}
	if list, all := d.Waiting(0, func(k Key) bool { return k == "z" }, 10); all != 1 || len(list) != 1 || list[0].Requester.ID != 9 {
		t.Errorf("of z: %d, %+v", all, list)
	}
	if list, all := d.Waiting(1, any, 10); all != 0 || len(list) != 0 {
		t.Errorf("of another database: %d, %+v", all, list)
	}
	for _, leave := range leaves {
		leave()
	}
	for range leaves {
		if err := receive(t, answers); !errors.Is(err, ErrLeft) {
			t.Error(err)
		}
	}
	d.free("k", held.Token)
}

// Those in the queue of all daemons are counted, wherever they wait.
func TestReadLock_CountsTheWaitersInTheQueueOfAllDaemons(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, long)
	one, two := c.daemon(), c.daemon()
	held := one.get(LockRequest{Key: "k"})
	answers := make(chan error, 2)
	var leaves []func()
	for _, d := range []*daemon{one, two} {
		leaves = append(leaves, d.Wait(nil, LockRequest{Key: "k", TTL: long, Fair: true, Wait: time.Minute}, func(_ Grant, err error) { answers <- err }))
	}
	eventually(t, "both stand in the queue", func() bool { return one.see("k").Queued == 2 && two.see("k").Queued == 2 })
	for _, leave := range leaves {
		leave()
		receive(t, answers)
	}
	one.free("k", held.Token)
}

// Most masters have forgotten: what the others do not show proves nothing.
func TestReadLock_IsUndecidedWhereAnUnlistedTokenMayHoldIt(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		n      int
		forget []int
		down   []int
		gone   []int // lose the copy, as if it had never arrived
		want   LockState
	}{
		{n: 3, forget: []int{0, 1, 2}, want: LockUndecided},
		{n: 3, forget: []int{0, 1}, gone: []int{2}, want: LockUndecided},
		{n: 3, forget: []int{0}, down: []int{1}, gone: []int{2}, want: LockUndecided},
		{n: 5, forget: []int{0, 1, 2}, gone: []int{3, 4}, want: LockUndecided},
		{n: 5, forget: []int{0, 1}, gone: []int{2, 3, 4}, want: LockFree},
		{n: 5, forget: []int{0}, down: []int{1}, gone: []int{2, 3, 4}, want: LockFree},
	} {
		c := newCluster(t, of.n, long)
		d := c.daemon()
		d.get(LockRequest{Key: "k", Token: tokenA})
		d.idle()
		for _, i := range of.gone {
			c.do(i, "DEL", "k")
		}
		for _, i := range of.forget {
			c.servers[i].RestartEmpty()
			d.awaitProcess(i, c.servers[i])
		}
		for _, i := range of.down {
			c.servers[i].Kill()
			d.await(i, "down")
		}
		d.idle()
		v := d.see("k")
		if v.State != of.want || len(v.Holders) != 0 || v.Count != 0 {
			t.Errorf("of %d, forgotten by %v, %v down: %+v, want state %d", of.n, of.forget, of.down, v, of.want)
		}
		was, err := d.force("k")
		switch {
		case was:
			t.Errorf("of %d, forgotten by %v: somebody was released", of.n, of.forget)
		case of.want == LockFree && err != nil:
			t.Errorf("of %d, forgotten by %v: %v, want 0", of.n, of.forget, err)
		case of.want == LockUndecided:
			noQuorum(t, err, "who holds it is not known")
		}
	}
}

func TestDescribe_ReplacesTheTextThroughAnyDaemonAndAnExtensionKeepsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, long)
	d, other := c.daemon(), c.daemon()
	c.servers[4].Kill()
	d.await(4, "down")
	other.await(4, "down")
	g := d.get(LockRequest{Key: "k", Requester: &Requester{Meta: "first"}, TTL: 10 * time.Second})
	d.idle()
	describe := func(through *daemon, token Token, text string) bool {
		t.Helper()
		answer := make(chan bool, 1)
		through.Describe(Lease{Key: "k", Token: token}, text, func(did bool, err error) {
			if err != nil {
				t.Error(err)
			}
			answer <- did
		})
		did := <-answer
		through.idle()
		return did
	}
	shows := func(text string) {
		t.Helper()
		h := other.see("k").Holders[0]
		if h.Note == nil || h.Note.Meta != text || h.Fence != g.Fence || h.Note.Daemon == "" {
			t.Errorf("%+v of %+v, want %q", h.Note, h, text)
		}
	}
	for _, through := range []*daemon{other, d} {
		text := "through " + fmt.Sprint(through == d)
		if !describe(through, g.Token, text) {
			t.Error("the holder is not described")
		}
		shows(text)
		if _, err := d.prolongAll(g.Token, 25*time.Second, "k"); err != nil { // with the note that this daemon knows
			t.Fatal(err)
		}
		shows(text)
	}
	if describe(other, "another-token", "wrong") {
		t.Error("a token that does not hold the lock is described")
	}
	shows("through true")
	d.free("k", g.Token)
	if describe(d, g.Token, "late") {
		t.Error("a token that has released the lock is described")
	}
	if !c.empty(0, 1, 2, 3) {
		t.Errorf("left behind: %s", c.found)
	}
}
