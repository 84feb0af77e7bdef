// Quarantine: an incarnation ends because an operator replaced the master's files, or
// because an eviction policy may have removed locks.

package pool

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

//go:embed scripts/quarantine.lua
var quarantineScript string

// endedIncarnation is one that the script ended, in one database.
type endedIncarnation struct{ db, identity string }

// endIncarnations ends those of all databases of the server.
func endIncarnations(link Link, sealKey string) ([]endedIncarnation, error) {
	replies := link.Exchange([]Command{{Args: []string{"EVAL", quarantineScript, "1", sealKey}}}, nil)
	if err := wire.ExchangeErr(replies, 1); err != nil {
		return nil, err
	}
	if replies[0].Err != nil {
		return nil, replies[0].Err
	}
	var all []endedIncarnation
	for _, item := range replies[0].Items {
		db, identity, _ := strings.Cut(item.Str, " ")
		all = append(all, endedIncarnation{db, identity})
	}
	return all, nil
}

// quarantineEvicting ends the incarnations of an unfit server that may evict keys: the
// keys that the policy removed do not return when the policy changes. If it cannot end
// them, the next dial tries again, and the admission compares the count.
func (l *lane) quarantineEvicting(link Link, f admission.ServerInfo, cause error) error {
	if f.Policy == "" || f.Policy == "noeviction" {
		return cause
	}
	all, _ := endIncarnations(link, l.group.sealKey)
	for _, e := range all {
		l.group.pool.options.Logger.Warn("incarnation invalidated", "master", l.master.Name, "db", e.db, "err", cause.Error())
	}
	return cause
}

// quarantineLocked is how long a quarantined master still has to wait, 0 if it is not.
func (l *lane) quarantineLocked() time.Duration {
	age := clock.Micros(l.group.pool.options.Age())
	left := l.conn.incarnation.Base + age - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond)
}

func quarantineText(wait time.Duration) string {
	return fmt.Sprintf("its memory is new, votes in %.1fs", wait.Seconds())
}

// Quarantine ends the incarnations of one master, given by its name or address,
// and reports to out what it ended and how long the master does not vote.
func Quarantine(ctx context.Context, o Options, master string, out io.Writer) error {
	if err := o.WithDefaults(); err != nil {
		return err
	}
	m, err := o.find(master)
	if err != nil {
		return err
	}
	p := &Pool{options: o, dial: o.Dialer}
	if p.dial == nil {
		p.dial = wire.DialRueidis(p.dialTimeout())
	}
	link, err := p.dial(ctx, m, 0)
	if err != nil {
		return fmt.Errorf("quarantine: master %s: %w; nothing was changed", m.Name, err)
	}
	defer link.Close()
	all, err := endIncarnations(link, o.KeyPrefix+"redlockd:seal")
	if err != nil {
		return fmt.Errorf("quarantine: master %s: %w", m.Name, err)
	}
	if len(all) == 0 {
		fmt.Fprintf(out, "master %s: it has no incarnation in any database; nothing was changed\n", m.Name)
	}
	for _, e := range all {
		fmt.Fprintf(out, "master %s: ended its incarnation in database %s (%s)\n", m.Name, e.db, e.identity)
		// The daemons that admit it may run with other limits than this process.
		if ttl, err := parseSettings(e.identity).duration("max-ttl"); err == nil {
			o.MaxTTL = max(o.MaxTTL, ttl)
		}
	}
	fmt.Fprintf(out, "master %s: it does not vote for %s from its next admission; a daemon that runs admits it at once (DMASTERS: quarantined)\n", m.Name, humanDuration(o.Age()))
	return nil
}

// find is the master of this name or address.
func (o *Options) find(master string) (Master, error) {
	var names []string
	for _, m := range o.Masters {
		if m.Name == master || m.Address == master {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Master{}, fmt.Errorf("quarantine: %q is the name or address of no master; allowed: %s (--masters)", master, strings.Join(names, ", "))
}
