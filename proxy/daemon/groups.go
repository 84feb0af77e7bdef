package daemon

// The groups of masters behind the daemon: usually one, whose Locker then serves alone.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/proxy/admin"
	"redlockd/redlock"
	"redlockd/redlock/groups"
	"redlockd/redlock/slots"
)

// engine is what serves all groups: a Locker, or a Router over several.
type engine interface {
	commands.Locks
	commands.IDs
	commands.Works
	commands.RedisCompat
	commands.Inspect
	commands.Masters
	EndWaits()
	Close(timeout time.Duration) error
}

// fleet is the masters of all groups and the engine on them.
type fleet struct {
	engine  engine
	groups  []admin.Group
	groupOf func(redlock.Key) string // nil with one group
	pools   []*pool.Pool
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
	}
	if config.Bootstrap && options[0].Embedded == 0 {
		if err := bootstrapIfBlank(ctx, options); err != nil {
			return f, err
		}
	}
	var all []groups.Group
	for i, one := range each {
		p, err := pool.New(options[i])
		if err != nil {
			return f, err
		}
		f.pools = append(f.pools, p)
		locker, err := redlock.New(p, lockerOptions(one, options[i].Logger))
		if err != nil {
			return f, err
		}
		group := groups.Group{Name: one.Group, Locker: locker}
		if len(each) == 1 {
			f.engine, f.groups = locker, []admin.Group{{Masters: p}}
			return f, nil
		}
		if group.Slots, err = slots.Parse(one.Slots); err != nil {
			return f, err
		}
		all, f.groups = append(all, group), append(f.groups, admin.Group{Name: one.Group, Masters: p})
	}
	router, err := groups.New(all, f.pools[0].Clock())
	if err == nil {
		f.engine, f.groupOf = router, router.GroupOf
	}
	return f, err
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
// serving. If a signal ends it, what it wrote stays.
func onMasters(stderr io.Writer, do func(context.Context, pool.Options, cli.CommandLine, io.Writer) error) cli.Job {
	return func(ctx context.Context, config configs.Config, command cli.CommandLine, out io.Writer) error {
		all, err := groupsOf(config, command)
		if err != nil {
			return err
		}
		options := make([]pool.Options, len(all))
		for i, one := range all {
			if options[i], err = poolOptions(one, newLogger(config, stderr)); err != nil {
				return err
			}
		}
		var errs []error
		for _, o := range options {
			if len(config.Groups) > 1 {
				fmt.Fprintf(out, "group %s, slots %s\n", o.Group, o.Slots)
			}
			errs = append(errs, inGroup(o, do(ctx, o, command, out)))
		}
		err = errors.Join(errs...)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("interrupted, and what the masters have stored stays: run the same command again, it does the rest or says what to do (%w)", err)
		}
		return err
	}
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
// it names, or all.
func groupsOf(config configs.Config, command cli.CommandLine) ([]configs.Config, error) {
	all := config.Each()
	if len(config.Groups) < 2 {
		return all, nil
	}
	named := slices.Clone(command.Leave)
	for _, name := range []string{command.Aged, command.Master} {
		if name != "" {
			named = append(named, name)
		}
	}
	all = slices.DeleteFunc(all, func(one configs.Config) bool {
		return slices.ContainsFunc(named, func(name string) bool { return !hasMaster(one, name, name) })
	})
	if len(all) == 0 {
		return nil, &configs.FieldError{Field: "master", Value: strings.Join(named, ", "), Problem: "is in no group of the file, or not all of them are in one"}
	}
	for _, joins := range command.Join {
		for _, g := range config.Groups {
			if other := (configs.Config{Masters: g.Masters}); len(all) > 1 || g.Name != all[0].Group && hasMaster(other, joins.Name, joins.Address) {
				return nil, &configs.FieldError{Field: "group", Problem: fmt.Sprintf("master %s can be added to one group, in which no other has its name or address", joins), Advice: "name it with --group"}
			}
		}
	}
	return all, nil
}

func hasMaster(one configs.Config, name, address string) bool {
	return slices.ContainsFunc(one.Masters, func(m configs.Master) bool { return m.Name == name || m.Address == address })
}
