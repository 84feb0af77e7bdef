// Embedded masters in a pool. They join it as real ones do, through rueidis and
// the reply guard, except that their identity is trusted: they support neither INFO
// nor CLIENT KILL, and their memory is exactly as old as this process.

package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/embedded"
	"redlockd/pool/wire"
)

// inProcess is the embedded masters of a pool; the zero value is none.
type inProcess struct {
	masters embedded.Masters
	options *Options
	offset  int64 // µs from Clock to the time of the masters
}

// start makes the masters that the options ask for, and names them there.
func (p *inProcess) start(o *Options) {
	p.options, p.offset = o, time.Now().UnixMicro()-clock.Micros(o.Clock.Now())
	p.masters = embedded.New(o.Embedded, p.time)
	o.Tracker = p.track
	for i := range o.Embedded {
		name := fmt.Sprintf("embedded-%d", i+1)
		o.Masters = append(o.Masters, Master{Name: name, Address: name, Network: "embedded"})
	}
}

// time is the clock of all embedded masters. It is this daemon's Clock, so it never steps
// against it, and its offset is exact.
func (p *inProcess) time() time.Time {
	return time.UnixMicro(clock.Micros(p.options.Clock.Now()) + p.offset)
}

func (p *inProcess) estimate() clock.Estimate {
	return clock.Estimate{Known: true, Offset: p.offset, Taken: p.options.Clock.Now()}
}

func (p *inProcess) dial(_ context.Context, m Master, db int) (Link, error) {
	master := p.masters.At(slices.Index(p.options.Masters, m)) // the lanes have no others
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

// track opens a connection that reads how long copies last, without tracking:
// miniredis does not track. Every client of these masters is in this process.
func (p *inProcess) track(ctx context.Context, m Master, db int, _ func([]string)) (Link, error) {
	return p.dial(ctx, m, db)
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

// admit writes the identity of a memory that began with this process.
func (l *embeddedLink) admit(sealKey, fingerprint string) (admission.Admission, error) {
	run := l.master.RunID
	identity := run + " 0 0 0 " + fingerprint
	_, err := wire.AskOne(l, "ZADD", sealKey, "NX", "0", identity)
	return admission.Admission{Incarnation: &Incarnation{Identity: identity, RunID: run, ID: "0", Works: true, Counters: true}}, err
}
