// Marks of a bootstrap: how far it has come on each master, see bootstrap.go.

package setup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/admission"
	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// preparedMark is the first mark. The second one is readyPrefix and the process, as identities
// name it: another process may have lost the end of what it wrote.
const (
	preparedMark = "prepared"
	readyPrefix  = "ready "
)

var errMarkLost = errors.New("the mark of the bootstrap ended or was lost meanwhile")

func (g *group) markKey() string { return g.options.GroupKey("bootstrap") }

type marks struct {
	texts   []string // by database, "" for none
	process string   // run_id:evicted_keys
}

func (m *marks) readyMark() string { return readyPrefix + m.process }
func (m *marks) ready(db int) bool { return m.texts[db] == m.readyMark() }
func (m *marks) set(db int) bool {
	return strings.HasPrefix(m.texts[db], readyPrefix) || m.texts[db] == preparedMark
}

// readMarks reads those of all databases of a master.
func (g *group) readMarks(c *candidate) (*marks, error) {
	replies, err := inDBs(c.link, g.databases(), wire.Words("GET", g.markKey()))
	if err != nil {
		return nil, err
	}
	stats, err := wire.AskOne(c.link, "INFO", "stats")
	if err = cmp.Or(err, stats.Err); err != nil {
		return nil, err
	}
	m := &marks{process: c.info.RunID + ":" + wire.InfoField(stats.Str, "evicted_keys")}
	for _, r := range replies {
		m.texts = append(m.texts, r.Str)
	}
	return m, nil
}

func (g *group) databases() (all []int) {
	for db := range g.options.Databases {
		all = append(all, db)
	}
	return all
}

// inDBs sends a command in several databases and returns its replies; an error reply is an
// error, too.
func inDBs(link wire.Link, dbs []int, command wire.Command) (replies []wire.Reply, err error) {
	var commands []wire.Command
	for _, db := range dbs {
		commands = append(commands, wire.Words("SELECT", strconv.Itoa(db)), command)
	}
	all, err := wire.Ask(link, commands...)
	for i := 0; err == nil && i < len(all); i += 2 {
		if err = errors.Join(all[i].Err, all[i+1].Err); err != nil {
			return nil, fmt.Errorf("database %d: %w", dbs[i/2], err)
		}
		replies = append(replies, all[i+1])
	}
	return replies, err
}

// mark makes all masters prepared in these databases, and then ready. What stands is not
// replaced: another run that began at the same time may have come further.
func (b *bootstrapping) mark(dbs []int, began time.Duration) error {
	if len(dbs) == 0 {
		return nil
	}
	// The first master that a daemon began with after the look votes at its age.
	window := max(b.group.options.Age(), 2*time.Second)
	for _, c := range b.all {
		until := (c.info.Est.At(began) + clock.Micros(window)) / 1000
		if _, err := inDBs(c.link, dbs, wire.Words("SET", b.group.markKey(), preparedMark, "NX", "PXAT", strconv.FormatInt(until, 10))); err != nil {
			return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, err)
		}
	}
	for i, c := range b.all {
		replies, err := inDBs(c.link, dbs, wire.Words("SET", b.group.markKey(), b.marked[i].readyMark(), "XX"))
		if err != nil {
			return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, err)
		}
		if slices.ContainsFunc(replies, func(r wire.Reply) bool { return r.Kind == wire.ReplyNil }) {
			return fmt.Errorf("bootstrap: master %s: %w", c.master.Name, errMarkLost)
		}
	}
	return nil
}

// unmark deletes the marks. One that stays on a master that lost nothing does no harm.
func (b *bootstrapping) unmark() {
	for _, c := range b.all {
		_, _ = inDBs(c.link, b.group.databases(), wire.Words("DEL", b.group.markKey()))
	}
}

// hasMemory reports whether a master that answers has an identity in any database that no
// unfinished bootstrap explains.
func (g *group) hasMemory(c *candidate) bool {
	if c.info.RunID == "" {
		return false
	}
	if g.readSeals([]*candidate{c}, "") != nil {
		return false
	}
	m, err := g.readMarks(c)
	if err != nil {
		return false
	}
	for db, s := range c.seals {
		if _, err := admission.ParseIdentity(s.identity); err == nil && !m.set(db) {
			return true
		}
	}
	return false
}
