package setup

// slowbootstrap_test.go: a bootstrap on a machine that stands still for a moment.

import (
	"context"
	"io"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

// slowLink is late with its first admissions by a clock that is moved.
type slowLink struct {
	wire.Link
	late func()
}

func (l *slowLink) Exchange(commands []wire.Command, replies []wire.Reply) []wire.Reply {
	if commands[0].Args[0] == "EVAL" {
		l.late()
	}
	return l.Link.Exchange(commands, replies)
}

// A clock is wrong only if the time that the admission took does not explain it.
func TestBootstrap_TriesAgainWhatStoodStill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stops int // admissions that stand still
		fails bool
	}{
		"once":   {1, false},
		"always": {1 << 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			servers := faulty.StartGroup(t, 3)
			stops := c.stops
			o := pool.Options{MasterTimeout: 10 * time.Second, Databases: 1}
			for i, s := range servers {
				o.Masters = append(o.Masters, wire.Master{Name: string(rune('a' + i)), Network: "tcp", Address: s.Addr()})
			}
			dial := wire.DialRueidis(20 * time.Second)
			o.Dialer = func(ctx context.Context, m wire.Master, db int) (wire.Link, error) {
				link, err := dial(ctx, m, db)
				return &slowLink{link, func() {
					if stops--; stops >= 0 {
						time.Sleep(admission.MaxSkew + 100*time.Millisecond)
					}
				}}, err
			}
			err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard)
			if (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
		})
	}
}

// A subcommand has time for masters that answer too slowly to vote.
func TestBootstrap_WaitsForSlowAnswers(t *testing.T) {
	t.Parallel()
	o := pool.Options{Databases: 1} // with the default master timeout
	for i, s := range faulty.StartGroup(t, 3) {
		relay := faulty.NewRelay(s.Addr())
		t.Cleanup(relay.Close)
		relay.Delay(2*o.DialTimeout(), faulty.ToClient)
		o.Masters = append(o.Masters, wire.Master{Name: string(rune('a' + i)), Network: "tcp", Address: relay.Addr()})
	}
	if err := Bootstrap(t.Context(), o, BootstrapTerms{}, io.Discard); err != nil {
		t.Error(err)
	}
}
