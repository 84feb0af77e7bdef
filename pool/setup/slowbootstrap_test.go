package setup

// slowbootstrap_test.go: a bootstrap on a machine that stands still for a moment.

import (
	"io"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/pool/admission"
	"redlockd/pool/faulty"
	"redlockd/pool/wire"
)

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
			o.Dialer = hooked(wire.DialRueidis(20*time.Second), func(_ string, commands []wire.Command, exchange func() []wire.Reply) []wire.Reply {
				if commands[0].Args[0] == "EVAL" {
					if stops--; stops >= 0 {
						time.Sleep(admission.MaxSkew + 100*time.Millisecond)
					}
				}
				return exchange()
			})
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
