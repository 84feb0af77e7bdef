package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/redlock"
	"redlockd/redlock/groups"
	"redlockd/redlock/slots"
)

// daemon is one process of the product: a pool and a locker of its own.
type daemon struct {
	world  *World
	index  int
	clock  *daemonClock
	list   []*server       // the masters that it is configured with
	file   [2]slots.Ranges // the slots of both groups in its file
	next   []*server       // those of the next process in its place, if they differ from the world's
	pool   *pool.Pool
	locker *redlock.Locker // on the first group of masters
	second *redlock.Locker // on the second one
	engine engine          // over all groups; nil until it has started
	plan   *groups.Map     // of both; nil with one group

	paused  time.Duration             // stopped until then
	resumed time.Duration             // when it goes on, or went on last
	drained time.Duration             // no client may wait since then; 0 = every client may
	blocked map[*server]time.Duration // cut off until then
	links   map[*simLink]bool
	tasks   map[*task]bool
	dead    bool
	busy    bool // an operator's command runs
}

func newDaemon(w *World, index int) *daemon {
	d := &daemon{world: w, index: index, list: w.list, file: w.files, blocked: map[*server]time.Duration{}, links: map[*simLink]bool{}, tasks: map[*task]bool{}}
	if w.Scenario.Movers > 0 && w.chance(2) {
		d.file = firstFiles()
	}
	d.clock = &daemonClock{
		daemon: d, origin: time.Duration(w.random.Int64N(int64(24 * time.Hour))),
		ppm: int64(w.random.IntN(2*w.Scenario.RatePPM+1) - w.Scenario.RatePPM),
	}
	return d
}

// masterTimeout is the master timeout of all daemons.
const masterTimeout = 100 * time.Millisecond

// exchangeTimeout is how long an exchange may take. Every other daemon has the pool's own bound,
// Options.StallTimeout. The others end connections earlier, as networks do, so that both happen
// while a master stands still: that an answer comes after all, and that a connection follows.
func (d *daemon) exchangeTimeout() time.Duration {
	if d.index%2 == 1 {
		return time.Second
	}
	return 2 * masterTimeout
}

// resolve finds the server behind a master's name.
func (d *daemon) resolve(name string) int {
	i := int(name[0] - 'a')
	if d.world.Scenario.Alias && d.index == 0 && i == 1 && d.world.bootstrapped {
		return 0 // a mistake in this daemon's configuration
	}
	return i
}

// options are those of the first group.
func (d *daemon) options() pool.Options {
	o := d.optionsOn(d.list)
	if d.world.Scenario.Groups {
		o.Group, o.Slots = "g1", d.slots(0)
	}
	return o
}

// secondOptions are those of the second group.
func (d *daemon) secondOptions() pool.Options {
	o := d.optionsOn(d.world.servers[d.world.Scenario.Masters:])
	o.Group, o.Slots = "g2", d.slots(1)
	return o
}

// slots are those of a group in this daemon's map.
func (d *daemon) slots(group int) string {
	if d.world.Scenario.OtherMap && d.index == d.world.Scenario.Daemons-1 {
		group = 1 - group
	}
	if d.file[group].Len() == slots.Count {
		return ""
	}
	return d.file[group].String()
}

func (d *daemon) optionsOn(list []*server) pool.Options {
	s := d.world.Scenario
	o := pool.Options{
		MaxTTL: s.MaxTTL, MaxKeep: s.MaxKeep, MasterTimeout: masterTimeout, Databases: 1, MaxFlush: s.MaxFlush,
		Clock: d.clock, Dialer: d.dial, Tasks: tasks{d}, Jitter: d.jitter,
		Logger: slog.New(&errorHandler{world: d.world}),
		// The first daemons of a world begin the group. Elsewhere each may begin it again,
		// which is more than daemons do.
		AwaitBootstrap: len(s.Lists) > 0 && d.world.now > time.Second,
	}
	if s.MaxWait > 0 && s.Movers == 0 { // a change that is followed wakes the waiters of all keys, in no order
		o.Tracker = d.track
	}
	for _, m := range list {
		o.Masters = append(o.Masters, pool.Master{Name: m.name, Network: "tcp", Address: m.name + ":6379"})
	}
	return o
}

func (d *daemon) jitter(limit time.Duration) time.Duration {
	return time.Duration(d.world.random.Int64N(int64(limit)))
}

// token is as long as the product's own, which are not drawn from a seed.
func (d *daemon) token() redlock.Token {
	return redlock.Token(fmt.Sprintf("%016x%011x", d.world.random.Uint64(), d.world.random.Uint64()>>20))
}

func (d *daemon) bootstrap() {
	all := []pool.Options{d.options()}
	if d.world.Scenario.Groups {
		all = append(all, d.secondOptions())
	}
	for _, o := range all {
		if err := setup.Bootstrap(context.Background(), o, setup.BootstrapTerms{Force: len(o.Masters)%2 == 0}, io.Discard); err != nil {
			d.world.violate("liveness", "", "bootstrap: "+err.Error())
		}
	}
}

// boot starts the daemon; it serves once its masters have been tried.
func (d *daemon) boot() {
	d.world.after(0, d, func() {
		d.world.spawn(d, func() {
			if err := d.makePlan(); err != nil {
				d.world.violate("liveness", "", "a daemon does not start: "+err.Error())
				return
			}
			p, l, err := d.start(d.options(), 0)
			var e engine = l
			if err == nil && d.world.Scenario.Groups && !d.dead {
				e, err = d.startSecond(l)
			}
			if d.pool = p; err == nil && !d.dead {
				d.locker, d.engine = l, e
			}
			if err != nil && !d.dead {
				d.world.violate("liveness", "", "a daemon does not start: "+err.Error())
			}
		})
	})
}

// makePlan is the daemon's map, before its pools receive configurations.
func (d *daemon) makePlan() (err error) {
	if !d.world.Scenario.Groups {
		return nil
	}
	owners := []slots.Owner{{Name: "g1"}, {Name: "g2"}}
	for i := range owners {
		if owners[i].Slots, err = slots.ParseOwned(d.slots(i)); err != nil {
			return err
		}
	}
	o := d.options()
	d.plan, err = groups.NewMap(owners, o.Age(), d.clock)
	return err
}

// start connects to a group of masters, by its number.
func (d *daemon) start(o pool.Options, group int) (*pool.Pool, *redlock.Locker, error) {
	options := redlock.Options{VolatileIDs: true, Tokens: d.token, Logger: slog.New(&errorHandler{world: d.world})}
	if d.plan != nil {
		o.OnConfiguration, options.Ownership = d.plan.OnConfiguration(group), d.plan.Ownership(group)
	}
	p, err := pool.New(o)
	if err != nil {
		return nil, nil, err
	}
	l, err := redlock.New(p, options)
	return p, l, err
}

// startSecond starts the second group and the router over both.
func (d *daemon) startSecond(first *redlock.Locker) (r *groups.Router, err error) {
	if _, d.second, err = d.start(d.secondOptions(), 1); err != nil {
		return nil, err
	}
	return groups.New([]groups.Group{{Name: "g1", Locker: first}, {Name: "g2", Locker: d.second}}, d.plan), nil
}

// kill ends the process. What it has sent may still be executed.
func (d *daemon) kill() {
	if d.pool != nil && d.engine != nil && !d.dead {
		if n := d.pool.Counters().Panics; n > 0 {
			d.world.violate("panics", "", fmt.Sprintf("%d panics in callbacks", n))
		}
	}
	d.dead = true
	for l := range d.links {
		l.broken = errDead
		l.abandon()
	}
	for len(d.tasks) > 0 {
		for _, t := range slices.SortedFunc(maps.Keys(d.tasks), func(a, b *task) int { return cmp.Compare(a.order, b.order) }) {
			if !t.rests {
				delete(d.tasks, t)
				continue
			}
			d.world.resume(t)
		}
	}
}

// replace starts another process in the place of one that was killed.
func (d *daemon) replace() *daemon {
	next := newDaemon(d.world, d.index)
	if d.world.Scenario.LeftOut {
		next.blocked = d.blocked // its machine is still cut off
	}
	switch {
	case d.index == 0:
		next.list = d.list // it misses each change of the masters
	case d.next != nil:
		next.list = d.next
	}
	d.world.daemons[d.index] = next
	next.boot()
	return next
}

func (d *daemon) heal() {
	clear(d.blocked)
	d.paused = 0
}

// serves reports whether clients can reach it.
func (d *daemon) serves() bool { return !d.dead && d.engine != nil }

// errorHandler receives what the product logs as an error: there must be nothing.
type errorHandler struct{ world *World }

func (*errorHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (a *errorHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(attr slog.Attr) bool { text += " " + attr.String(); return true })
	a.world.violate("panics", "", text)
	return nil
}

func (a *errorHandler) WithAttrs([]slog.Attr) slog.Handler { return a }
func (a *errorHandler) WithGroup(string) slog.Handler      { return a }
