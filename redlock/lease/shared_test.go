package lease

// pure_shared_test.go: the downgrade of a writer, answer by answer.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// downgrade is a ballot of a writer that becomes a reader.
func (d *pureDaemon) downgrade(f *sharedMode, t quorum.Tally) (a *lockBallot, said chan error) {
	said = make(chan error, 2) // 2: so that a second answer would be seen
	d.engine.EnterAlways()
	call := &acquireCall{
		leases: d.Leases, group: d.engine.Pool.Group(0), request: LockRequest{Key: "k", Mode: Readers, TTL: time.Minute},
		done: func(_ Grant, err error) { said <- err },
	}
	f.downgrade = &downgrade{}
	return &lockBallot{call: call, mode: f, fences: f, key: "k", token: engine.NewToken(), start: d.engine.Clock.Now(), ballot: engine.Ballot{Engine: d.engine, Tally: t}}, said
}

// A client that received a refusal would still be the writer. Once a master has received
// a downgrade, the answer is therefore that the outcome is unknown.
func TestShared_AWriterWhoseDowngradeHasBegunIsNotRefused(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	for name, v := range map[string]quorum.Result{"refused": quorum.Refused, "split for too long": quorum.Split, "not decided": quorum.Unknown} {
		for _, begun := range []bool{false, true} {
			a, said := d.downgrade(&sharedMode{downgradeBallots: maxDowngradeBallots}, quorum.Tally{N: 5, Quorum: 3, Yes: 2, No: 3})
			a.call.began = d.engine.Clock.Now() - time.Hour
			a.mode.(*sharedMode).downgrade.begun.Store(begun)
			a.fail(v)
			err := <-said
			var less *engine.NoQuorum
			switch isLess := errors.As(err, &less); {
			case begun && (!isLess || !less.Downgrading || !strings.Contains(err.Error(), "at most a reader")):
				t.Errorf("%s, and the writer had begun to step down: %v", name, err)
			case !begun && v != quorum.Unknown && !errors.Is(err, engine.ErrHeld):
				t.Errorf("%s: %v, want ErrHeld", name, err)
			case !begun && v == quorum.Unknown && (!isLess || less.Downgrading):
				t.Errorf("%s: %v, want NoQuorum and nothing of stepping down", name, err)
			}
		}
	}
}

func TestShared_OnlyANamedCopyIsDowngraded(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	f := &sharedMode{downgradeBallots: 1}
	a, _ := d.downgrade(f, quorum.Tally{N: 5, Quorum: 3})
	f.downgrade.ends[1] = 1234
	for lane, want := range []bool{false, true} {
		var c pool.Command
		f.command(a, &pool.SendContext{Lane: lane}, &c, 5678)
		if got := f.downgrade.begun.Load(); got != want {
			t.Errorf("master %d was asked, %q: has begun to step down: %v", lane, c.Args, got)
		}
	}
}

// Two masters have downgraded the writer; the third reported its copy too late to be
// named. The next ballot names it at once, whatever the masters without an answer do.
func TestShared_DoesNotWaitForMastersWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	d := newPureDaemon(t)
	for name, c := range map[string]struct {
		form sharedMode
		want quorum.Result
	}{
		"told in the second ballot":            {sharedMode{downgradeBallots: 1, writers: 1}, quorum.Split},
		"told in the first one":                {sharedMode{writers: 1}, quorum.Undecided},
		"refused by somebody else's copy":      {sharedMode{downgradeBallots: 1}, quorum.Undecided},
		"told in the last ballot there may be": {sharedMode{downgradeBallots: maxDowngradeBallots, writers: 1}, quorum.Undecided},
	} {
		a, _ := d.downgrade(&c.form, quorum.Tally{N: 5, Quorum: 3, Yes: 2, No: 1, Uncounted: 1})
		if got := a.Decide(&a.ballot.Tally); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A release in the same flush moves before acquires of other tokens, see pool/bulk.go.
func TestBulkToken_OfAnAcquireIsItsTokenButForALevel(t *testing.T) {
	f := &sharedMode{}
	a := &lockBallot{call: &acquireCall{request: LockRequest{Mode: Readers}}, mode: f, token: "mine"}
	if got := a.BulkToken(); got != "mine" {
		t.Errorf("a reader's release stays behind the acquire of %q, want its own token", got)
	}
	f.level = true
	if got := a.BulkToken(); got != "" {
		t.Errorf("releases move before a level of a reentrant lock, but for %q: its owner may hold the key by what they release", got)
	}
}
