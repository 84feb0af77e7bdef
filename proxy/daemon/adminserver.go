package daemon

// The admin endpoint (--admin-listen) and what it shows of the rest of the daemon.

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/cli"
	"redlockd/commands/dropin"
	"redlockd/configs"
	"redlockd/proxy/admin"
)

// adminCloseTimeout bounds a scrape in flight after the last client has gone.
const adminCloseTimeout = time.Second

// adminServer is --admin-listen; nil is valid and means that there is none.
type adminServer struct {
	config configs.Config
	grants *admin.Latencies
	server *admin.Server
}

// newAdminServer does not listen yet.
func newAdminServer(config configs.Config) *adminServer {
	if config.AdminListen == "" {
		return nil
	}
	return &adminServer{config: config, grants: admin.NewLatencies(config.MetricsPrefixes...)}
}

// measure wraps locks so that the endpoint's latency figures include every operation.
func (a *adminServer) measure(locks commands.Locks) commands.Locks {
	if a == nil {
		return locks
	}
	return a.grants.Measure(locks)
}

// listen opens the address; requests are served only after serve.
func (a *adminServer) listen(groups *fleet, users *access.Users, table *commands.Table, stats *dropin.Stats,
	snapshot func() commands.Snapshot, logger *slog.Logger,
) error {
	if a == nil {
		return nil
	}
	sources := admin.Sources{
		Version: cli.Version(), Locks: groups.engine, Groups: groups.groups, GroupOf: groups.slots.GroupOf, Snapshot: snapshot, Latencies: a.grants, Dropin: stats.List,
		Warning: a.config.BootstrapWarning,
	}
	server, err := admin.New(admin.Options{
		Listen: a.config.AdminListen, LocalOnly: localOnly(a.config), Pprof: a.config.Pprof, Cmdline: configs.RedactArgs(os.Args), Login: users, Commands: table, Logger: logger,
		TLS:     func() (*tls.Config, error) { return clientTLS(a.config).Load() },
		Sources: sources,
		Ready: func(group string) (int, string) {
			status, why := groups.ready(group)
			if a.config.BootstrapWarning != "" { // this needs no login, so it does not name the source
				why += "; note: bootstrap = true stays in force, take it out (the log names its source)"
			}
			return status, why
		},
	})
	if err != nil {
		return err
	}
	a.server = server
	return nil
}

// serve starts serving until close. ctx ends when the daemon drains.
func (a *adminServer) serve(ctx context.Context, out io.Writer) {
	if a == nil {
		return
	}
	a.server.Serve()
	context.AfterFunc(ctx, a.server.Drain)
	fmt.Fprintf(out, "metrics and health on %s\n", a.server.URL())
}

// reloadTLS reads the certificates again.
func (a *adminServer) reloadTLS() error {
	if a == nil || a.server == nil {
		return nil
	}
	return a.server.ReloadTLS()
}

// close may be called at any stage of construction.
func (a *adminServer) close() {
	if a == nil || a.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminCloseTimeout)
	defer cancel()
	a.server.Shutdown(ctx)
}
