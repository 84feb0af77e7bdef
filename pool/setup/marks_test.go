package setup

// marks_test.go: a bootstrap that ends half way, and the run that follows it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

// fragile is a dialer whose masters answer nothing after some exchanges of all links together.
type fragile struct {
	left atomic.Int64
	dial wire.Dialer
}

func newFragile(exchanges int64) *fragile {
	f := &fragile{dial: wire.DialRueidis(2 * unhurried)}
	f.left.Store(exchanges)
	return f
}

func (f *fragile) Dial(ctx context.Context, m wire.Master, db int) (wire.Link, error) {
	if f.left.Load() <= 0 {
		return nil, errors.New("the network has ended")
	}
	return hooked(f.dial, func(_ string, _ []wire.Command, exchange func() []wire.Reply) (replies []wire.Reply) {
		left := f.left.Add(-1)
		if left >= -1 {
			replies = exchange()
		}
		if left < 0 {
			return nil // of the first one the answer alone is lost
		}
		return replies
	})(ctx, m, db)
}

// standsOn are the keys of both databases of a master, and its identities' bases.
func standsOn(t *testing.T, s *faulty.Server) (keys, bases []string) {
	t.Helper()
	for db := range 2 {
		reply, err := s.Do("EVAL", "redis.call('SELECT', ARGV[1]) return {redis.call('KEYS', '*'), redis.call('ZRANGE', KEYS[1], 0, -1)}", 1, "redlockd:seal", db)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range reply.([]any)[0].([]any) {
			keys = append(keys, key.(string))
		}
		base := ""
		if identity := reply.([]any)[1].([]any); len(identity) == 1 {
			base = strings.Fields(identity[0].(string))[2]
		}
		bases = append(bases, base)
	}
	return keys, bases
}

// interrupted empties the servers and bootstraps them until so many exchanges are over.
func interrupted(t *testing.T, servers []*faulty.Server, o pool.Options, exchanges int64) error {
	t.Helper()
	for _, s := range servers {
		s.FlushAll()
	}
	o.Dialer = newFragile(exchanges).Dial
	return Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard)
}

// begunByDaemon has a daemon begin with the masters that are blank, in one database.
func begunByDaemon(t *testing.T, o pool.Options) {
	t.Helper()
	p, err := pool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	g := p.Start()
	within(t, "the daemon is admitted everywhere", func() bool {
		for _, s := range g.Statuses() {
			if s.State != "voting" && s.State != "quarantined" {
				return false
			}
		}
		return true
	})
}

// Wherever it ends, the same command completes it: without --force, also after daemons have
// begun with what it left blank.
func TestBootstrap_ASecondRunCompletesWhatTheFirstBegan(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*testing.T, pool.Options){"nothing between": func(*testing.T, pool.Options) {}, "a daemon between": begunByDaemon} {
		t.Run(name, func(t *testing.T) {
			servers := faulty.StartGroup(t, 3)
			o := optionsOf(servers...)
			o.MaxTTL = time.Hour
			ends := 0
			for n := int64(1); ; n++ {
				if n > 300 {
					t.Fatal("no bootstrap completes")
				}
				err := interrupted(t, servers, o, n)
				if err == nil {
					break
				}
				marked := false
				for _, s := range servers {
					keys, bases := standsOn(t, s)
					marked = marked || len(keys) > 0 || strings.Join(bases, "") != ""
				}
				if name != "nothing between" && !marked {
					continue // a daemon may begin with masters of which nothing is known
				}
				ends++
				between(t, o)
				if again := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); again != nil {
					t.Fatalf("it ended after %d exchanges (%v), and again with %v", n, err, again)
				}
				for i, s := range servers {
					keys, bases := standsOn(t, s)
					if fmt.Sprint(bases) != "[0 0]" || strings.Contains(fmt.Sprint(keys), "redlockd:bootstrap") {
						t.Fatalf("it ended after %d exchanges (%v): master %d has %q and %q after the second run", n, err, i, keys, bases)
					}
				}
			}
			if ends < 5 {
				t.Errorf("it was interrupted %d times", ends)
			}
		})
	}
}

// afterExchanges finds the shortest interrupted bootstrap that left what is wanted.
func afterExchanges(t *testing.T, servers []*faulty.Server, o pool.Options, wanted func() bool) {
	t.Helper()
	for n := int64(1); n < 300; n++ {
		if err := interrupted(t, servers, o, n); err == nil {
			break
		}
		if wanted() {
			return
		}
	}
	t.Fatal("no interrupted bootstrap left that")
}

// A master that may vote, and has lost its memory since, is no new one.
func TestBootstrap_DoesNotCompleteWhatAMasterHasForgotten(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	o.MaxTTL = time.Hour
	afterExchanges(t, servers, o, func() bool {
		_, a := standsOn(t, servers[0])
		_, b := standsOn(t, servers[1])
		_, c := standsOn(t, servers[2])
		return fmt.Sprint(a, b, c) == "[0 0] [0 0] [ ]"
	})
	servers[0].FlushAll()
	var used inUse
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); !errors.As(err, &used) || !strings.Contains(err.Error(), "has an identity already in database 0") {
		t.Errorf("%v", err)
	}
	if keys, bases := standsOn(t, servers[0]); len(keys) > 0 {
		t.Errorf("the master that forgot has %q, %q", keys, bases)
	}
}

// Nor is one whose process ended: it may lack the end of what it wrote.
func TestBootstrap_DoesNotCompleteAnotherProcess(t *testing.T) {
	servers := faulty.StartGroup(t, 3, "--appendonly", "yes", "--appendfsync", "everysec")
	o := optionsOf(servers...)
	o.MaxTTL = time.Hour
	afterExchanges(t, servers, o, func() bool {
		_, a := standsOn(t, servers[0])
		_, c := standsOn(t, servers[2])
		return fmt.Sprint(a, c) == "[0 0] [ ]"
	})
	if _, err := servers[2].Do("CONFIG", "SET", "appendfsync", "always"); err != nil { // the next write syncs the mark
		t.Fatal(err)
	}
	if _, err := servers[2].Do("SET", "other", "x"); err != nil {
		t.Fatal(err)
	}
	servers[2].Restart()
	if keys, _ := standsOn(t, servers[2]); !strings.Contains(fmt.Sprint(keys), "redlockd:bootstrap") {
		t.Fatalf("the mark was lost: %q", keys)
	}
	var used inUse
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); !errors.As(err, &used) {
		t.Errorf("%v", err)
	}
	if _, bases := standsOn(t, servers[2]); fmt.Sprint(bases) != "[ ]" {
		t.Errorf("the restarted master may vote: %q", bases)
	}
}

func TestBootstrap_ChangesNothingIfOneMasterRefusesTheMark(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	allow(t, servers[2], "default", "-set")
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err == nil || !strings.Contains(err.Error(), "bootstrap: master c: ") || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("%v", err)
	}
	for i, s := range servers {
		if keys, _ := standsOn(t, s); len(keys) > 0 {
			t.Errorf("master %d has %q", i, keys)
		}
	}
	allow(t, servers[2], "default", "+set")
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
		t.Error(err)
	}
}

// One clock that is off is found before any master may vote.
func TestBootstrap_FindsAWrongClockBeforeItWrites(t *testing.T) {
	servers := faulty.WithClock().StartGroup(t, 3)
	servers[2].Step(2 * time.Second)
	o := optionsOf(servers...)
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err == nil || !strings.Contains(err.Error(), "master c: its clock is +") {
		t.Errorf("%v", err)
	}
	for i, s := range servers {
		if keys, _ := standsOn(t, s); len(keys) > 0 {
			t.Errorf("master %d has %q", i, keys)
		}
	}
}

// The daemon's option: an unfinished bootstrap is an error, a group that has served is none.
func TestBootstrapIfBlank_FailsWhereTheGroupWouldWait(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	servers[2].Kill()
	if err := BootstrapIfBlank(t.Context(), o); err == nil || !strings.Contains(err.Error(), "bootstrap needs all 3 masters: master c") {
		t.Errorf("a blank group without one master: %v", err)
	}
	servers[2].Restart()
	if err := BootstrapIfBlank(t.Context(), o); err != nil {
		t.Error(err)
	}
	if err := BootstrapIfBlank(t.Context(), o); err != nil {
		t.Errorf("a group that is in use: %v", err)
	}
	servers[2].Kill()
	if err := BootstrapIfBlank(t.Context(), o); err != nil {
		t.Errorf("a group that is in use, without one master: %v", err)
	}
}

// Several daemons with the option start at once.
func TestBootstrapIfBlank_AtOnceInSeveralDaemons(t *testing.T) {
	servers := faulty.StartGroup(t, 3)
	o := optionsOf(servers...)
	o.MaxTTL = time.Hour
	for range 5 {
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- BootstrapIfBlank(t.Context(), o) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		for i, s := range servers {
			if _, bases := standsOn(t, s); fmt.Sprint(bases) != "[0 0]" {
				t.Errorf("master %d has %q", i, bases)
			}
			s.FlushAll()
		}
	}
}
