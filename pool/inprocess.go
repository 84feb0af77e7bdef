// Embedded masters in a pool. They join it as real ones do, through rueidis and
// the reply guard, except that their identity is trusted: they support neither INFO
// nor CLIENT KILL, and their memory is exactly as old as this process.

package pool

import (
	"context"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/embedded"
	"redlockd/pool/wire"
)

func (p *Pool) embedded() bool { return p.inProcess != nil }

// embeddedTime is the clock of all embedded masters. It is this daemon's Clock, so it
// never steps against it, and the daemon knows it exactly.
func (p *Pool) embeddedTime() time.Time {
	return time.UnixMicro(clock.Micros(p.options.Clock.Now()) + p.ownClock)
}

// ownEstimate is the estimate of an embedded master's clock.
func (p *Pool) ownEstimate() clock.Estimate {
	return clock.Estimate{Known: true, Offset: p.ownClock, Taken: p.options.Clock.Now()}
}

// checkOwnClockLocked stands for checkClockLocked: a clock that is this daemon's own cannot
// step, gain or be misjudged, but an answer can be late.
func (l *lane) checkOwnClockLocked(f *flush, now time.Duration) error {
	l.est = l.group.pool.ownEstimate()
	if now-f.sent > l.group.pool.options.MasterTimeout {
		l.group.counters.LateFlushes++
		return errLate
	}
	return nil
}

// Embedded returns the in-process masters, nil with real ones.
func (p *Pool) Embedded() embedded.Masters { return p.inProcess }

func (p *Pool) dialEmbedded(_ context.Context, m Master, db int) (Link, error) {
	index, _ := p.indexOf(m.Name) // the lanes have no other names
	master := p.inProcess.At(index)
	conn, err := master.Dial()
	if err != nil {
		return nil, err
	}
	link, err := wire.NewRueidisLink(conn, m, db, p.options.DialTimeout(), p.options.StallTimeout())
	if err != nil {
		return nil, err
	}
	return &embeddedLink{Link: link, master: master}, nil
}

// trackEmbedded opens a connection that reads how long copies last, without tracking:
// miniredis does not track. Every client of these masters is in this process.
func (p *Pool) trackEmbedded(ctx context.Context, m Master, db int, _ func([]string)) (Link, error) {
	return p.dialEmbedded(ctx, m, db)
}

// embeddedLink moves the master's clock before every flush.
type embeddedLink struct {
	Link
	master *embedded.Master
}

func (l *embeddedLink) Exchange(commands []Command, replies []Reply) []Reply {
	l.master.Turn(func() { replies = l.Link.Exchange(commands, replies) })
	return replies
}

// verifyEmbedded writes the identity of a memory that began with this process.
func (d *attempt) verifyEmbedded() (*connection, error) {
	g := d.lane.group
	run := d.link.(*embeddedLink).master.RunID
	d.info = admission.ServerInfo{RunID: run, Version: "embedded", Est: g.pool.ownEstimate()}
	if err := d.identify(); err != nil {
		return nil, err
	}
	identity := run + " 0 0 0 " + g.pool.fingerprint(g.db, "1", d.lane.master.Name)
	if _, err := wire.AskOne(d.link, "ZADD", g.sealKey, "NX", "0", identity); err != nil {
		return nil, err
	}
	if err := admission.LoadScripts(d.link, g.pool.scripts); err != nil {
		return nil, err
	}
	return d.connected(admission.Admission{Incarnation: &Incarnation{Identity: identity, RunID: run, ID: "0"}}), nil
}
