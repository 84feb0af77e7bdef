// redlockd serves quorum locks over independent Redis masters to clients that
// speak RESP. This file is the order in which the parts are put together, and
// the reverse order in which they are taken apart.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"redlockd/commands"
	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/proxy"
	"redlockd/redlock"
)

func main() {
	collectLess()
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // both signals may come before the first is taken
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go watchSignals(signals, cancel)
	os.Exit(cli.Report(os.Stderr, run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)))
}

// watchSignals drains at the first signal and gives up at the second. It lives
// as long as the process.
func watchSignals(signals <-chan os.Signal, drain context.CancelFunc) {
	<-signals
	drain()
	<-signals
	os.Exit(cli.ExitRuntime)
}

// run does what the command line asks for; ctx ends when the process shall.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	app := cli.App{Environ: environ, In: os.Stdin, Out: stdout, Err: stderr, Build: cli.Build(), HashPassword: commands.HashPassword}
	app.Serve = func(ctx context.Context, config configs.Config) error {
		return serve(ctx, config, stdout, newLogger(config, stderr))
	}
	app.Bootstrap = func(ctx context.Context, config configs.Config, force bool, fenceAbove int64, out io.Writer) error {
		if err := checkFenceAbove(fenceAbove); err != nil {
			return err
		}
		return withMasters(config, stderr, func(o pool.Options) error {
			o.FenceAbove = fenceAbove
			return pool.Bootstrap(ctx, o, force, out)
		})
	}
	app.Check = func(ctx context.Context, config configs.Config, out io.Writer) error {
		return withMasters(config, stderr, func(o pool.Options) error { return pool.Check(ctx, o, out) })
	}
	app.Reconfigure = func(ctx context.Context, config configs.Config, force bool, out io.Writer) error {
		return withMasters(config, stderr, func(o pool.Options) error { return pool.Reconfigure(ctx, o, force, out) })
	}
	app.Quarantine = func(ctx context.Context, config configs.Config, master string, out io.Writer) error {
		return withMasters(config, stderr, func(o pool.Options) error { return pool.Quarantine(ctx, o, master, out) })
	}
	return app.Run(ctx, args)
}

// serve wires from the bottom up and serves until ctx ends. Then the way back,
// all of it within --drain-timeout: clients, operations, masters.
func serve(ctx context.Context, config configs.Config, stdout io.Writer, logger *slog.Logger) error {
	began := time.Now()
	defer warn(config, logger)()
	options, err := poolOptions(config, logger)
	if err != nil {
		return err
	}
	masters, err := pool.New(options)
	if err != nil {
		return err
	}
	defer masters.Close()
	locker, err := redlock.New(masters, lockerOptions(config, logger))
	if err != nil {
		return err
	}
	users, scripts, err := admitted(config)
	if err != nil {
		return err
	}
	traces, err := newTraces(config, logger)
	if err != nil {
		return err
	}
	defer traces.close()
	var server *proxy.Server // set before the first client can ask for its figures
	clients := func() commands.ClientCounts { return clientCounts(server.Stats(), config.MaxClients) }
	door := newDoor(config)
	defer door.close()
	table := commands.NewTable(commands.Env{
		Locks: traces.Locks(door.measure(locker)), Waits: traces.Waits(door.measureWaits(locker)), IDs: traces.IDs(locker), Works: traces.Works(locker), WorkEnds: traces.WorkEnds(locker), Traces: traces.counts(), Events: locker, Figures: locker, Reports: locker, Drains: locker, Looks: locker, Databases: config.Databases,
		Plain: traces.Plain(locker), Scripts: scripts, Compat: compat(config, locker), MasterTimeout: config.MasterTimeout, LongTTL: config.LongTTL, NoTTL: config.NoTTL,
		MaxTTL: config.MaxTTL, KeyPrefix: config.KeyPrefix, MaxKeep: config.MaxKeep, MaxWait: config.MaxWait, MaxSubscriptions: config.MaxSubscriptions, VolatileIDs: volatileIDs(config),
		Version: cli.Version(), Start: began, Port: port(config), Config: config.Settings,
		Clients: clients, Users: users, Connections: func() commands.Connections { return server },
	})
	if err := door.take(masters, locker, table, clients, traces.counts(), logger); err != nil {
		return err
	}
	// When the last client has its reply, what is left are the copies that are
	// being given back: the flush under way and one more.
	last := min(2*config.MasterTimeout, config.DrainTimeout/2)
	server, err = proxy.New(proxyOptions(config, config.DrainTimeout-last-traces.farewell, logger), table)
	if err != nil {
		return err
	}
	defer onHangup(&reloader{config: config, users: users, server: server, door: door, logger: logger})()
	cli.Banner(stdout, config, server.Addrs(), masters.Quorum())
	door.open(ctx, stdout)
	// In this order: a hold whose connection the server ends before the locker knows
	// why would be released, with its client still at work.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		logger.Info("draining", "within", config.DrainTimeout.String())
		locker.EndWaits()
		stop()
	})
	err = server.Serve(serving)
	if late := locker.Close(last); late != nil {
		logger.Warn("stopped before all was given back", "because", late)
	}
	return err
}
