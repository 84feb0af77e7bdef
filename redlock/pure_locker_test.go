package redlock

// pure_locker_test.go: the Locker's promises on masters inside this process.

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/redlocktest"
)

// pureDaemon is a Locker on five embedded masters.
type pureDaemon struct {
	*Locker
	t *testing.T
}

func newPureDaemon(t *testing.T, o Options) *pureDaemon {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	// The master timeout is wide, so that a busy machine fails nothing.
	p, err := pool.New(pool.Options{Embedded: 5, MasterTimeout: time.Minute, Late: 100 * time.Millisecond, Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l, err := New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return &pureDaemon{l, t}
}

func (d *pureDaemon) lock(r LockRequest) (Grant, error) {
	d.t.Helper()
	answer := make(chan lockAnswer, 1)
	d.Lock(nil, r, func(g Grant, err error) { answer <- lockAnswer{g, err} })
	a := receive(d.t, answer)
	return a.grant, a.err
}

// take is lock for what must be granted.
func (d *pureDaemon) take(r LockRequest) Grant {
	d.t.Helper()
	r.TTL = cmp.Or(r.TTL, patience)
	g, err := d.lock(r)
	if err != nil || g.Validity() <= 0 || g.Validity() >= r.TTL || g.Key != r.Key || g.Fence <= 0 {
		d.t.Fatalf("lock %+v: %+v, %v", r, g, err)
	}
	return g
}

func (d *pureDaemon) unlock(r UnlockRequest) (bool, error) {
	d.t.Helper()
	return redlocktest.Release(d.t, d.Leases, r)
}

func (d *pureDaemon) extend(r ExtendRequest) (Grant, error) {
	d.t.Helper()
	return redlocktest.Prolong(d.t, d.Leases, r)
}

// onMasters does something to every master behind the daemon's back.
func (d *pureDaemon) onMasters(f func(lane int)) {
	for lane := range d.engine.Pool.N() {
		f(lane)
	}
}

func (d *pureDaemon) holders(db int, key, token string) int {
	return redlocktest.Holders(d.engine, db, key, token)
}

// quiet waits until the lanes have nothing left to do.
func (d *pureDaemon) quiet() {
	d.t.Helper()
	if err := d.untilIdle(time.Minute); err != nil {
		d.t.Fatal(err)
	}
}

func TestLocker_ALockIsOneTokensUntilItIsReleased(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{KeyPrefix: "p:"})
	g := d.take(LockRequest{Key: "invoices"})
	if !g.Fresh || len(g.Token) != 27 {
		t.Errorf("%+v, want a fresh grant with a token of 27 characters", g)
	}
	if _, err := d.lock(LockRequest{Key: "invoices", TTL: time.Minute}); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v, want ErrHeld", err)
	}
	d.quiet()
	if n := d.holders(0, "p:invoices", string(g.Token)); n != 5 {
		t.Errorf("%d masters hold it, want all 5", n)
	}
	if released, err := d.unlock(UnlockRequest{Key: "invoices", Token: "not the token"}); released || err != nil {
		t.Errorf("a wrong token released: %v, %v", released, err)
	}
	for want := range 2 {
		if released, err := d.unlock(UnlockRequest{Key: "invoices", Token: g.Token}); released != (want == 0) || err != nil {
			t.Errorf("release %d: %v, %v", want+1, released, err)
		}
	}
	d.quiet()
	if n := d.holders(0, "p:invoices", string(g.Token)); n != 0 {
		t.Errorf("%d masters still hold it", n)
	}
	if next := d.take(LockRequest{Key: "invoices"}); next.Fence <= g.Fence {
		t.Errorf("fence %d after %d", next.Fence, g.Fence)
	}
}

func TestLocker_AMinorityOfForeignLocksRefusesNothing(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	for lane := range 2 {
		d.engine.Pool.Embedded().At(lane).Server().Set("key", "foreign")
	}
	g := d.take(LockRequest{Key: "key"})
	if released, err := d.unlock(UnlockRequest{Key: "key", Token: g.Token}); !released || err != nil {
		t.Errorf("%v, %v", released, err)
	}
	d.quiet()
	if n := d.holders(0, "key", "foreign"); n != 2 {
		t.Errorf("%d of 2 foreign locks are left", n)
	}
	d.engine.Pool.Embedded().At(2).Server().Set("key", "foreign")
	if _, err := d.lock(LockRequest{Key: "key", TTL: time.Minute}); !errors.Is(err, ErrHeld) {
		t.Errorf("with a majority of foreign locks: %v, want ErrHeld", err)
	}
	d.quiet()
	if n := d.holders(0, "key", "foreign"); n != 3 || len(d.copies("key")) != 3 {
		t.Errorf("%d foreign locks and %q on the masters, want the attempt undone", n, d.copies("key"))
	}
}

// copies are the values at a key of database 0.
func (d *pureDaemon) copies(key string) (out []string) {
	d.onMasters(func(lane int) {
		if got, err := d.engine.Pool.Embedded().At(lane).Server().Get(key); err == nil {
			out = append(out, got)
		}
	})
	return out
}

func TestLocker_AnExtensionIsForTheHolderAndNeverShortens(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	g := d.take(LockRequest{Key: "key", TTL: 10 * time.Second})
	if e, err := d.extend(ExtendRequest{Key: "key", Token: g.Token, TTL: 50 * time.Second}); err != nil || e.Validity() <= 40*time.Second {
		t.Errorf("extended: %v, %v", e.Validity(), err)
	}
	if e, err := d.extend(ExtendRequest{Key: "key", Token: g.Token, TTL: time.Second}); err != nil || e.Validity() > time.Second {
		t.Errorf("a short extension says %v, %v", e.Validity(), err)
	}
	if _, err := d.extend(ExtendRequest{Key: "key", Token: "another one", TTL: time.Minute}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a wrong token: %v, want ErrNotHeld", err)
	}
	if _, err := d.extend(ExtendRequest{Key: "free", Token: g.Token, TTL: time.Minute}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a free key: %v, want ErrNotHeld", err)
	}
	d.quiet()
	d.onMasters(func(lane int) {
		if left := d.engine.Pool.Embedded().At(lane).TTL("key"); left < 40*time.Second {
			t.Errorf("master %d keeps it for %v: the short extension has shortened it", lane, left)
		}
	})
}

func TestLocker_ALockThatExpiredOnAMajorityIsGone(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	g := d.take(LockRequest{Key: "key", TTL: 30 * time.Second})
	d.quiet()
	d.onMasters(func(lane int) {
		if lane > 1 {
			d.engine.Pool.Embedded().At(lane).FastForward(40 * time.Second)
		}
	})
	if _, err := d.extend(ExtendRequest{Key: "key", Token: g.Token, TTL: time.Minute}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("extended: %v, want ErrNotHeld: a minority is no lease", err)
	}
	next := d.take(LockRequest{Key: "key"})
	if next.Fence <= g.Fence {
		t.Errorf("fence %d after %d", next.Fence, g.Fence)
	}
}

func TestLocker_AMinorityThatExpiredIsRepairedByAnExtension(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	g := d.take(LockRequest{Key: "key", TTL: 30 * time.Second})
	d.quiet()
	for lane := range 2 {
		d.engine.Pool.Embedded().At(lane).FastForward(40 * time.Second)
	}
	if _, err := d.extend(ExtendRequest{Key: "key", Token: g.Token, TTL: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	d.quiet()
	if n := d.holders(0, "key", string(g.Token)); n != 5 {
		t.Errorf("%d masters hold it, want 5", n)
	}
}

func TestLocker_ARepeatOfATokenIsTheSameLockWithANewFence(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	first := d.take(LockRequest{Key: "key", Token: "my own token"})
	again := d.take(LockRequest{Key: "key", Token: "my own token"})
	if !first.Fresh || again.Fresh || again.Token != first.Token || again.Fence <= first.Fence {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if _, err := d.lock(LockRequest{Key: "key", Token: "another token", TTL: time.Minute}); !errors.Is(err, ErrHeld) {
		t.Errorf("another token: %v, want ErrHeld", err)
	}
	if released, err := d.unlock(UnlockRequest{Key: "key", Token: "my own token"}); !released || err != nil {
		t.Errorf("%v, %v", released, err)
	}
}

func TestLocker_RepeatsOfATokenAtOnceAreAllGrantedWithDistinctFences(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	const callers = 20
	grants := make(chan lockAnswer, callers)
	var b Batch
	for range callers {
		d.Lock(&b, LockRequest{Key: "key", Token: "my own token", TTL: time.Minute}, func(g Grant, err error) {
			grants <- lockAnswer{g, err}
		})
	}
	b.Send()
	var fences []Fence
	for range callers {
		a := <-grants
		if a.err != nil {
			t.Fatal(a.err)
		}
		fences = append(fences, a.grant.Fence)
	}
	slices.Sort(fences)
	if len(slices.Compact(fences)) != callers {
		t.Errorf("%v: a fence was given twice", fences)
	}
}

func TestLocker_ForeignDataIsNeitherTakenNorTouched(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	d.onMasters(func(lane int) {
		if _, err := d.engine.Pool.Embedded().At(lane).Server().Push("key", "data"); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := d.lock(LockRequest{Key: "key", Token: "my own token", TTL: time.Minute}); !errors.Is(err, ErrWrongType) {
		t.Errorf("with a token: %v, want ErrWrongType", err)
	}
	if _, err := d.lock(LockRequest{Key: "key", TTL: time.Minute}); !errors.Is(err, ErrHeld) && !errors.Is(err, ErrWrongType) {
		t.Errorf("without: %v, want a refusal", err)
	}
	if released, err := d.unlock(UnlockRequest{Key: "key", Token: "my own token"}); released || err != nil {
		t.Errorf("released: %v, %v", released, err)
	}
	if _, err := d.extend(ExtendRequest{Key: "key", Token: "my own token", TTL: time.Minute}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("extended: %v", err)
	}
	d.quiet()
	d.onMasters(func(lane int) {
		if got, err := d.engine.Pool.Embedded().At(lane).Server().List("key"); err != nil || len(got) != 1 {
			t.Errorf("master %d: %q, %v", lane, got, err)
		}
	})
}

func TestLocker_EachDatabaseHasLocksOfItsOwn(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	zero, nine := d.take(LockRequest{Key: "key"}), d.take(LockRequest{DB: 9, Key: "key"})
	d.quiet()
	for db, g := range map[int]Grant{0: zero, 9: nine} {
		if n := d.holders(db, "key", string(g.Token)); n != 5 {
			t.Errorf("database %d: %d masters, want 5", db, n)
		}
	}
	if released, err := d.unlock(UnlockRequest{DB: 0, Key: "key", Token: nine.Token}); released || err != nil {
		t.Errorf("another database's token: %v, %v", released, err)
	}
	if released, err := d.unlock(UnlockRequest{DB: 9, Key: "key", Token: nine.Token}); !released || err != nil {
		t.Errorf("its own: %v, %v", released, err)
	}
	if _, err := d.lock(LockRequest{Key: "key", TTL: time.Minute}); !errors.Is(err, ErrHeld) {
		t.Errorf("database 0: %v, want ErrHeld", err)
	}
}

func TestLocker_AnUndeliveredGrantIsGivenBack(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{MaxOperations: 1})
	for _, db := range []int{0, 3} {
		d.GiveBack(d.take(LockRequest{DB: db, Key: "key"}))
		d.quiet()
		d.take(LockRequest{DB: db, Key: "key"})
	}
	if got := d.Counters().GivenBack; got != 2 {
		t.Errorf("%d given back, want 2", got)
	}
}

func TestLocker_AtItsLimitItDoesNothingAndReportsIt(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{MaxOperations: 2})
	var b Batch
	answers := make(chan error, 5)
	for range 2 {
		d.Lock(&b, LockRequest{Key: "key", TTL: time.Minute}, func(_ Grant, err error) { answers <- err })
	}
	var busy *Busy
	if _, err := d.lock(LockRequest{Key: "other", TTL: time.Minute}); !errors.As(err, &busy) || busy.Limit != 2 {
		t.Errorf("lock: %v, want Busy with the limit of 2", err)
	}
	if _, err := d.unlock(UnlockRequest{Key: "other", Token: "some token"}); !errors.As(err, &busy) {
		t.Errorf("unlock: %v, want Busy", err)
	}
	if _, err := d.extend(ExtendRequest{Key: "other", Token: "some token", TTL: time.Second}); !errors.As(err, &busy) {
		t.Errorf("extend: %v, want Busy", err)
	}
	b.Send()
	granted := 0
	for range 2 {
		if err := <-answers; err == nil {
			granted++
		}
	}
	d.quiet()
	if granted != 1 || len(d.copies("other")) != 0 {
		t.Errorf("%d of two locks of a key granted, %q at the other key", granted, d.copies("other"))
	}
	if _, err := d.lock(LockRequest{Key: "free", TTL: time.Minute}); err != nil {
		t.Errorf("below the limit again: %v", err)
	}
}

func TestLocker_EveryOutcomeLeavesItsPlaceInTheLimit(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{MaxOperations: 1})
	g := d.take(LockRequest{Key: "key", Token: "my own token"})
	for range 3 {
		d.lock(LockRequest{Key: "key", TTL: time.Minute})
		d.lock(LockRequest{Key: "key", Token: "another token", TTL: time.Minute})
		d.lock(LockRequest{Key: "expired", TTL: time.Nanosecond})
		d.extend(ExtendRequest{Key: "key", Token: "another token", TTL: time.Minute})
		d.extend(ExtendRequest{Key: "key", Token: g.Token, TTL: time.Minute})
		d.unlock(UnlockRequest{Key: "key", Token: "another token"})
	}
	d.quiet()
	if n := d.engine.InFlight(); n != 0 {
		t.Errorf("%d operations in flight with nothing to do", n)
	}
}

func TestLocker_AfterCloseItDoesNothing(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	g := d.take(LockRequest{Key: "key"})
	if err := d.Close(time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := d.lock(LockRequest{Key: "other", TTL: time.Minute}); !errors.Is(err, ErrShutdown) {
		t.Errorf("lock: %v", err)
	}
	if _, err := d.unlock(UnlockRequest{Key: "key", Token: g.Token}); !errors.Is(err, ErrShutdown) {
		t.Errorf("unlock: %v", err)
	}
	if _, err := d.extend(ExtendRequest{Key: "key", Token: g.Token, TTL: time.Minute}); !errors.Is(err, ErrShutdown) {
		t.Errorf("extend: %v", err)
	}
	if n := d.holders(0, "key", string(g.Token)); n != 5 {
		t.Errorf("%d masters hold what was granted before, want 5", n)
	}
}

func TestLocker_OptionsAreChecked(t *testing.T) {
	p, err := pool.New(pool.Options{Embedded: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := New(p, Options{MaxOperations: -1}); err == nil || !strings.Contains(err.Error(), "max-operations: -1") {
		t.Errorf("%v, want the field and its value", err)
	}
}

func TestCounters_ShowWhatIsHeldAndForHowLong(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t, Options{})
	one := d.take(LockRequest{Key: "one"})
	d.take(LockRequest{Key: "two", More: []Key{"three"}})
	if n := d.Counters().Held; n != 3 {
		t.Errorf("%d locks are held, want 3", n)
	}
	if released, err := d.unlock(UnlockRequest{Key: "one", Token: one.Token}); !released || err != nil {
		t.Fatal(released, err)
	}
	c, times := d.Counters(), uint64(0)
	for _, n := range c.HeldFor.Counts {
		times += n
	}
	if c.Held != 2 || times != 1 || c.HeldFor.Sum < 0 || c.HeldFor.Sum > time.Minute {
		t.Errorf("%d locks are held and %d were, for %v; want 2 and 1", c.Held, times, c.HeldFor.Sum)
	}
}
