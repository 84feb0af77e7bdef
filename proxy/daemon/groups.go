package daemon

// The groups of masters behind the daemon: usually one, whose Locker then serves alone.

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlockd/commands"
	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/proxy/admin"
	"redlockd/redlock"
	"redlockd/redlock/groups"
	"redlockd/redlock/homes"
	"redlockd/redlock/slots"
)

// engine serves all groups: a Locker, or a Router over several.
type engine interface {
	commands.Locks
	commands.IDs
	commands.Works
	commands.RedisCompat
	commands.Inspect
	commands.Masters
	RefuseWaits()
	EndWaits()
	Close(timeout time.Duration) error
}

// fleet is the masters of all groups and the engine on them.
type fleet struct {
	engine engine
	groups []admin.Group
	pools  []*pool.Pool
	slots  *groups.Map // nil: one group has all
	tls    []masterTLS
}

// masterTLS secures the connections to a master: the files, and what was read of them.
type masterTLS struct {
	files configs.TLS
	inUse *atomic.Pointer[tls.Config]
}

// newFleet builds the groups of the configuration, and bootstraps them if it says so.
func newFleet(ctx context.Context, config configs.Config, logger *slog.Logger) (f *fleet, err error) {
	each := config.Each()
	if len(config.Groups) > 0 && config.Group != "" {
		return nil, &configs.FieldError{Field: "group", Value: config.Group, Problem: "cannot be chosen by a daemon: it serves all groups of its file", Advice: "leave it out"}
	}
	f = &fleet{}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	options, clock := make([]pool.Options, len(each)), pool.SystemClock()
	for i, one := range each {
		log := logger
		if len(each) > 1 {
			log = logger.With("group", one.Group)
		}
		if options[i], err = poolOptions(one, log); err != nil {
			return f, err
		}
		options[i].Clock = clock // a lock of several groups compares the times of all
		for n, m := range one.Masters {
			if m.TLS != nil {
				files := configs.TLS{CAFile: m.TLS.CAFile, CertFile: m.TLS.CertFile, KeyFile: m.TLS.KeyFile}
				f.tls = append(f.tls, masterTLS{files, options[i].Masters[n].TLS})
			}
		}
	}
	if config.Bootstrap && options[0].Embedded == 0 {
		if err := bootstrapIfBlank(ctx, options); err != nil {
			return f, err
		}
	}
	if len(each) == 1 {
		p, locker, err := f.start(options[0], lockerOptions(each[0], options[0].Logger))
		f.engine, f.groups = locker, []admin.Group{{Masters: p}}
		return f, err
	}
	var owners []slots.Owner
	for _, g := range config.Groups {
		owners = append(owners, slots.Owner{Name: g.Name, Slots: g.Slots})
	}
	if f.slots, err = groups.NewMap(owners, options[0].Age(), clock); err != nil {
		return f, err
	}
	var all []groups.Group
	for i, one := range each {
		with := lockerOptions(one, options[i].Logger)
		options[i].OnConfiguration, with.Ownership = f.slots.OnConfiguration(i), f.slots.Ownership(i)
		p, locker, err := f.start(options[i], with)
		if err != nil {
			return f, err
		}
		all, f.groups = append(all, groups.Group{Name: one.Group, Locker: locker}), append(f.groups, admin.Group{Name: one.Group, Masters: p})
	}
	f.engine = groups.New(all, f.slots)
	return f, nil
}

// start connects to the masters of one group.
func (f *fleet) start(o pool.Options, with redlock.Options) (*pool.Pool, *redlock.Locker, error) {
	p, err := pool.New(o)
	if err != nil {
		return nil, nil, err
	}
	f.pools = append(f.pools, p)
	locker, err := redlock.New(p, with)
	return p, locker, err
}

// bootstrapIfBlank bootstraps the groups that are new, if the others have the slots of this map. If
// one of them is out of reach, the others are served as they are.
func bootstrapIfBlank(ctx context.Context, options []pool.Options) error {
	err := setup.CheckSlots(ctx, options...)
	if errors.Is(err, setup.ErrUnread) {
		options[0].Logger.Warn("--bootstrap has no effect", "err", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	for _, o := range options {
		if err := setup.BootstrapIfBlank(ctx, o); err != nil {
			return inGroup(o, err)
		}
	}
	return nil
}

// inGroup adds the name of one of several groups to an error.
func inGroup(o pool.Options, err error) error {
	if err == nil || o.Slots == "" {
		return err
	}
	return fmt.Errorf("group %s: %w", o.Group, err)
}

// announce makes this daemon a node of a cluster; without --cluster-announce it returns nil.
func announce(config configs.Config, logger *slog.Logger, f *fleet) *homes.Homes {
	if config.ClusterAnnounce == "" {
		return nil
	}
	if f.slots == nil {
		return homes.New(config.ClusterAnnounce, []slots.Ranges{slots.All()}, logger, f.pools...)
	}
	nodes := homes.New(config.ClusterAnnounce, f.slots.Groups(), logger, f.pools...)
	f.slots.OnChange(func() { nodes.SetGroups(f.slots.Groups()) })
	nodes.SetGroups(f.slots.Groups()) // they may have moved before that
	return nodes
}

// inUse is the configuration with the masters and the slots that the daemon has followed.
func (f *fleet) inUse(config configs.Config) configs.Config {
	used := make([]configs.Group, len(f.pools))
	for i, p := range f.pools {
		o := p.Options()
		used[i].Name = f.groups[i].Name
		used[i].Slots, _ = slots.ParseOwned(o.Slots) // it was read before
		for _, m := range o.Masters {
			used[i].Masters = append(used[i].Masters, configs.Master{Name: m.Name, Network: m.Network, Address: m.Address})
		}
	}
	if config.Masters = used[0].Masters; len(config.Groups) > 0 {
		config.Masters, config.Groups = nil, used
	}
	return config
}

func (f *fleet) close() {
	for _, p := range f.pools {
		p.Close()
	}
}

// ready is the answer of /readyz: for one group, or whether any group votes.
func (f *fleet) ready(name string) (status int, why string) {
	status = http.StatusServiceUnavailable
	var lines []string
	for i, g := range f.groups {
		if name != "" && name != g.Name {
			continue
		}
		p := f.pools[i]
		voters := p.Group(0).Voters()
		if voters >= p.Quorum() {
			status = http.StatusOK
		}
		line := fmt.Sprintf("%d of %d masters may vote, %d needed", voters, p.N(), p.Quorum())
		if work, in := pool.WorkVoters(p.Reports(0)); voters >= p.Quorum() && work < p.Quorum() {
			line += fmt.Sprintf("; work: %d of %d may vote, for %s", work, p.N(), in.Round(time.Second))
		}
		if g.Name != "" {
			line = "group " + g.Name + ": " + line
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return http.StatusNotFound, fmt.Sprintf("%q is no group of this daemon", name)
	}
	return status, strings.Join(lines, "\n")
}

// onMasters is a job that runs do once for each group that the command line is about, without
// serving.
func onMasters(stderr io.Writer, do func(context.Context, pool.Options, cli.CommandLine, io.Writer) error) cli.Job {
	return func(ctx context.Context, config configs.Config, command cli.CommandLine, out io.Writer) error {
		var options []pool.Options
		for _, one := range config.Each() {
			o, err := poolOptions(one, newLogger(config, stderr))
			if err != nil {
				return err
			}
			options = append(options, o)
		}
		if len(config.Groups) > 1 {
			var err error
			if options, err = groupsOf(ctx, config, command, options); err != nil {
				return err
			}
		}
		var errs []error
		for _, o := range options {
			if len(config.Groups) > 1 {
				fmt.Fprintf(out, "group %s, slots %s\n", o.Group, cmp.Or(o.Slots, "all"))
			}
			errs = append(errs, inGroup(o, do(ctx, o, command, out)))
		}
		return errors.Join(errs...)
	}
}

// changing is a job that changes the masters. If a signal ends it, what it wrote stays.
func changing(job cli.Job) cli.Job {
	return func(ctx context.Context, config configs.Config, command cli.CommandLine, out io.Writer) error {
		return withInterrupt(ctx, job(ctx, config, command, out))
	}
}

// withInterrupt adds what to do after a signal that ended a job.
func withInterrupt(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted, and what the masters have stored stays: run the same command again, it does the rest or reports what to do (%w)", err)
	}
	return err
}

// slotsJob shows the map of slots, or moves slots. It is about all groups of the file.
func slotsJob(ctx context.Context, config configs.Config, c cli.CommandLine, stderr, out io.Writer) error {
	if len(config.Groups) > 0 {
		config.Group = ""
	}
	var options []pool.Options
	var names []string
	for _, one := range config.Each() {
		o, err := poolOptions(one, newLogger(config, stderr))
		if err != nil {
			return err
		}
		options, names = append(options, o), append(names, one.Group)
	}
	if c.Ranges == "" {
		rates := map[string]float64{}
		for _, r := range c.Rates {
			rates[setup.RangeOf(r.Range, r.Group)] += r.PerSecond
		}
		return setup.ShowSlots(ctx, options, rates, out)
	}
	ranges, err := slots.Parse(c.Ranges)
	if err == nil && len(ranges) == 0 {
		err = fmt.Errorf("%q are no slots to move", c.Ranges)
	}
	if err != nil {
		return &configs.FieldError{Field: "slots move", Problem: err.Error(), Advice: "give ranges, such as redlockd slots move 0-1000 --to g2"}
	}
	if len(config.Groups) > 0 && !slices.Contains(names, c.To) {
		return &configs.FieldError{Field: "--to", Value: c.To, Problem: "is none of the groups of the file", Advice: "name one of " + strings.Join(names, ", ")}
	}
	return setup.MoveSlots(ctx, options, ranges, c.To, out)
}

// onSlots is a job that begins only if the masters of all groups of the file have its slots,
// whichever of them the job is for.
func onSlots(job cli.Job) cli.Job {
	return func(ctx context.Context, config configs.Config, command cli.CommandLine, out io.Writer) error {
		whole := config
		if len(config.Groups) > 0 {
			whole.Group = ""
		}
		var options []pool.Options
		for _, one := range whole.Each() {
			o, err := poolOptions(one, nil)
			if err != nil {
				return err
			}
			options = append(options, o)
		}
		if err := setup.CheckSlots(ctx, options...); err != nil && !command.Force {
			return err
		}
		return job(ctx, config, command, out)
	}
}

// groupsOf are the groups that a command line is about: that of --group, that of the masters that
// it names, or all. A master that the file lacks may be on the present list of a group.
func groupsOf(ctx context.Context, config configs.Config, command cli.CommandLine, all []pool.Options) ([]pool.Options, error) {
	named := slices.Clone(command.Leave)
	for _, name := range []string{command.Aged, command.Master} {
		if name != "" {
			named = append(named, name)
		}
	}
	var chosen []pool.Options
	for _, o := range all {
		if len(all) == 1 || hasAll(o.Masters, named) {
			chosen = append(chosen, o)
		}
	}
	lists := ""
	for i := 0; i < len(all) && len(chosen) == 0; i++ {
		present, list := setup.PresentMasters(ctx, all[i])
		if hasAll(present, named) {
			chosen = all[i : i+1]
		}
		lists += fmt.Sprintf("; group %s has %s", all[i].Group, list)
	}
	if len(chosen) == 0 {
		return nil, &configs.FieldError{Field: "master", Value: strings.Join(named, ", "), Problem: "is in no group, or not all of them are in one" + lists, Advice: "name masters of one group"}
	}
	for _, joins := range command.Join {
		for _, g := range config.Groups {
			if len(chosen) > 1 || g.Name != chosen[0].Group && slices.ContainsFunc(g.Masters, func(m configs.Master) bool { return m.Name == joins.Name || m.Address == joins.Address }) {
				return nil, &configs.FieldError{Field: "group", Problem: fmt.Sprintf("master %s can be added to one group, in which no other has its name or address", joins), Advice: "name it with --group"}
			}
		}
	}
	return chosen, nil
}

// notServing returns the reason for which nothing is granted before an operator has begun a group; "" if that is not so.
func (f *fleet) notServing() string {
	for i, p := range f.pools {
		if o := p.Options(); len(o.Masters) > 0 && p.AllBlank() {
			which := ""
			if f.groups[i].Name != "" {
				which = " of group " + f.groups[i].Name
			}
			return fmt.Sprintf("NOT SERVING: for a new group run redlockd bootstrap --masters %s and this daemon's other settings. If the masters%s had locks before, they have lost their memory: see All masters lost in the runbook\n", o.Names(o.Configuration(0)), which)
		}
	}
	return ""
}

// hasAll reports whether a list has each of the named masters, by its name or address.
func hasAll(list []pool.Master, named []string) bool {
	return !slices.ContainsFunc(named, func(name string) bool {
		return !slices.ContainsFunc(list, func(m pool.Master) bool { return m.Name == name || m.Address == name })
	})
}
