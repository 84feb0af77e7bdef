package daemon

// The subcommands of redlockd, and the order in which the daemon builds its parts
// and shuts them down.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/cli"
	"redlockd/commands/conn"
	"redlockd/commands/counter"
	"redlockd/commands/dropin"
	"redlockd/commands/inspect"
	"redlockd/commands/lock"
	"redlockd/commands/rediscompat"
	"redlockd/commands/tracing"
	"redlockd/commands/work"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/proxy"
)

// Main runs the program and returns its exit code. args are without the program's
// name; environ is in the form of os.Environ. It may be called once in a process:
// it takes over SIGINT, SIGTERM and the garbage collector's setting.
func Main(args, environ []string, in io.Reader, stdout, stderr io.Writer) int {
	limitMemory(os.DirFS("/"))
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2) // both signals may arrive before the first is received
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go watchSignals(signals, cancel)
	return cli.Report(stderr, run(ctx, args, environ, in, stdout, stderr))
}

// quietTime is the least silence of a connection that is closed while others are still served.
const quietTime = 10 * time.Millisecond

// terminated is the signal for which the daemon drains.
type terminated struct{ os.Signal }

func (t terminated) Error() string { return t.String() }

// watchSignals drains at the first signal and exits at the second. It runs until
// the process ends.
func watchSignals(signals <-chan os.Signal, drain context.CancelCauseFunc) {
	drain(terminated{<-signals})
	<-signals
	os.Exit(cli.ExitRuntime)
}

// run executes the command line until ctx ends.
func run(ctx context.Context, args, environ []string, in io.Reader, stdout, stderr io.Writer) error {
	app := cli.App{Environ: environ, In: in, Out: stdout, Err: stderr, Build: cli.Build(), HashPassword: access.HashPassword}
	app.Serve = func(ctx context.Context, config configs.Config) error {
		signal.Ignore(syscall.SIGPIPE) // a daemon survives the program that reads its log
		log := newLogWriter(config, stderr)
		defer log.close()
		return withAddressHint(serve(ctx, config, stdout, newLogger(config, log), log.lost.Load))
	}
	app.Jobs = map[string]cli.Job{
		"bootstrap": changing(onSlots(onMasters(stderr, func(ctx context.Context, o pool.Options, c cli.CommandLine, out io.Writer) error {
			if err := checkFenceAbove(c.FenceAbove); err != nil {
				return err
			}
			if c.Aged != "" {
				return setup.BootstrapAged(ctx, o, c.Aged, out)
			}
			return setup.Bootstrap(ctx, o, setup.BootstrapTerms{Force: c.Force, Once: c.Once, FenceAbove: c.FenceAbove}, out)
		}))),
		"check": onMasters(stderr, func(ctx context.Context, o pool.Options, c cli.CommandLine, out io.Writer) error {
			return setup.Check(ctx, o, c.Performance, out)
		}),
		"reconfigure": changing(onMasters(stderr, func(ctx context.Context, o pool.Options, c cli.CommandLine, out io.Writer) error {
			return awaited(ctx, setup.Reconfigure(ctx, o, changeTerms(c), out), o, c, out)
		})),
		"masters": changing(onMasters(stderr, func(ctx context.Context, o pool.Options, c cli.CommandLine, out io.Writer) error {
			if len(c.Join)+len(c.Leave) == 0 {
				return setup.Check(ctx, o, false, out)
			}
			join, err := poolOptions(configs.Config{Masters: c.Join}, nil) // reads their certificates
			if err != nil {
				return err
			}
			return awaited(ctx, setup.ChangeMasters(ctx, o, setup.MastersChange{Join: join.Masters, Leave: c.Leave}, changeTerms(c), out), o, c, out)
		})),
		"slots": func(ctx context.Context, config configs.Config, c cli.CommandLine, out io.Writer) error {
			return withInterrupt(ctx, slotsJob(ctx, config, c, stderr, out))
		},
		"quarantine": changing(onMasters(stderr, func(ctx context.Context, o pool.Options, c cli.CommandLine, out io.Writer) error {
			return setup.Quarantine(ctx, o, c.Master, c.Force, out)
		})),
	}
	return app.Run(ctx, args)
}

func changeTerms(c cli.CommandLine) setup.ChangeTerms {
	return setup.ChangeTerms{Force: c.Force, Absent: c.Absent}
}

// awaited waits for the masters after a change that succeeded, if the operator wants it.
func awaited(ctx context.Context, err error, o pool.Options, c cli.CommandLine, out io.Writer) error {
	if err != nil || !c.Wait {
		return err
	}
	return setup.AwaitVotes(ctx, o, out)
}

// withAddressHint adds what to do if the daemon cannot listen on an address.
func withAddressHint(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the process that listens there, or choose another address with --listen or --admin-listen", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: no interface of this machine has it; choose another address with --listen or --admin-listen, such as :7379 for all interfaces", err)
	}
	return err
}

// newTable has the commands of all packages, in the order of the documentation.
func newTable(deps commands.Deps) *commands.Table {
	return commands.NewTable(deps, lock.Rows, counter.Rows, work.Rows, inspect.Rows, rediscompat.Rows, conn.Rows)
}

// graceOf returns the time for which the daemon serves on, while balancers notice that /readyz is 503. A person who
// interrupts it does not wait for that.
func graceOf(ctx context.Context, config configs.Config) time.Duration {
	if cause, is := errors.AsType[terminated](context.Cause(ctx)); is && cause.Signal == syscall.SIGTERM {
		return config.DrainGrace
	}
	return 0
}

// lateTable is a table that is set before the first client is accepted.
type lateTable struct{ *commands.Table }

// serve builds the parts bottom-up and serves until ctx ends. After --drain-grace it shuts down
// top-down within --drain-timeout: clients, operations, masters.
func serve(ctx context.Context, config configs.Config, stdout io.Writer, logger *slog.Logger, lostMessages func() int64) error {
	began, hangups := time.Now(), hangups()
	defer signal.Stop(hangups)
	defer warn(config, logger)()
	// After the last client received its reply, only copies of failed attempts remain
	// to be given back: the flush in flight and one more.
	last := min(2*config.MasterTimeout, config.DrainTimeout/2)
	// The addresses and certificates come first: a mistake in them is reported before any
	// master is dialled. Clients are accepted at the end.
	var table lateTable
	server, err := proxy.New(proxyOptions(config, config.DrainTimeout-last-spanTimeout(config), logger), &table)
	if err != nil {
		return err
	}
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }() // if it never serves
	groups, err := newFleet(ctx, config, logger)
	if err != nil {
		return err
	}
	defer groups.close()
	locker := groups.engine // with one group its Locker itself
	adaptGCPercent(ctx, locker)
	users, scripts, err := accessControl(config)
	if err != nil {
		return err
	}
	fair, err := fairKeys(config)
	if err != nil {
		return err
	}
	tracer, err := newTracer(config, logger)
	if err != nil {
		return err
	}
	defer closeTracer(tracer, config)
	endpoint := newAdminServer(config)
	defer endpoint.close()
	stats := new(dropin.Stats)
	operations := tracer.Wrap(tracing.Operations{Locks: endpoint.measure(locker), IDs: locker, Works: locker, RedisCompat: locker})
	deps := commands.Deps{
		Locks: operations.Locks, FairKeys: fair, IDs: operations.IDs, Works: operations.Works, Inspect: locker, Masters: locker, Databases: config.Databases,
		RedisCompat: operations.RedisCompat, Scripts: scripts, DropinStats: stats, CompatTest: config.CompatTest, MasterTimeout: config.MasterTimeout, LongTTL: config.LongTTL, NoTTL: config.NoTTL,
		MaxTTL: config.MaxTTL, KeyPrefix: config.KeyPrefix, MaxKeep: config.MaxKeep, MaxWait: config.MaxWait, MaxHold: config.MaxHold, MaxSubscriptions: config.MaxSubscriptions, VolatileIDs: volatileIDs(config),
		Version: cli.Version(), Start: began, Port: port(config), Warning: config.BootstrapWarning, Config: config.Settings, Logger: logger,
		Requests: new(commands.Requests), Clients: server.Stats, Users: users, Connections: server, LostMessages: lostMessages,
	}
	if tracer != nil {
		deps.Traces = tracer.Counts
	}
	nodes := announce(config, logger, groups)
	if nodes != nil {
		deps.Cluster = nodes.Division
	}
	if groups.slots != nil {
		deps.Slots = groups.slots.Served
	}
	table.Table = newTable(deps)
	if err := endpoint.listen(groups, users, table.Table, stats, deps.Snapshot, logger); err != nil {
		return err
	}
	defer onHangup(hangups, &reloader{config: config, users: users, server: server, endpoint: endpoint, masters: groups.tls, logger: logger})()
	nodes.AwaitOthers(ctx)
	cli.Banner(stdout, groups.inUse(config), server.Addrs(), pool.Quorum)
	endpoint.serve(ctx, stdout)
	fmt.Fprint(stdout, groups.notServing())
	// The locker ends waits before the server closes connections: otherwise closing a
	// connection with HOLD would release its lock while the client is still at work.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		grace := graceOf(ctx, config)
		logger.Info("draining", "grace", grace.String(), "timeout", config.DrainTimeout.String())
		locker.RefuseWaits()
		nodes.Close()
		time.Sleep(grace * 4 / 5)
		locker.EndWaits()
		if grace > 0 {
			quiet, end := context.WithTimeout(context.WithoutCancel(ctx), grace*3/20)
			server.CloseIdle(quiet, quietTime)
			end()
			time.Sleep(grace / 20)
		}
		stop()
	})
	err = server.Serve(serving)
	if late := locker.Close(last); late != nil {
		logger.Warn("stopped before all copies were given back", "err", late)
	}
	return err
}
