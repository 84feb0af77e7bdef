// What does the operator's door show of the rest of the daemon?
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"redlockd/commands"
	"redlockd/commands/cli"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/proxy/admin"
	"redlockd/redlock"
)

// farewell is how long a scrape under way may take once the last client has gone.
const farewell = time.Second

// operatorsDoor is --admin-listen; nil is a door that there is not.
type operatorsDoor struct {
	config configs.Config
	grants *admin.Grants
	server *admin.Server
}

// newDoor takes no address yet.
func newDoor(config configs.Config) *operatorsDoor {
	if config.AdminListen == "" {
		return nil
	}
	return &operatorsDoor{config: config, grants: admin.NewGrants()}
}

// measure puts the door's clock in front of what decides.
func (d *operatorsDoor) measure(locks commands.Locks) commands.Locks {
	if d == nil {
		return locks
	}
	return d.grants.Measure(locks)
}

// measureWaits is measure for what blocks.
func (d *operatorsDoor) measureWaits(waits commands.Waits) commands.Waits {
	if d == nil {
		return waits
	}
	return d.grants.MeasureWaits(waits)
}

// take takes the address; nobody is served before open.
func (d *operatorsDoor) take(masters *pool.Pool, locker *redlock.Locker, table *commands.Table,
	clients func() commands.ClientCounts, traces func() commands.TraceCounts, logger *slog.Logger,
) error {
	if d == nil {
		return nil
	}
	sources := admin.Sources{
		Version: cli.Version(), Locks: locker, Looks: locker, Masters: masters, Clients: clients, Grants: d.grants, Dropin: table.DropinFigures, Traces: traces,
		Warning: d.config.BootstrapWarning,
	}
	server, err := admin.New(admin.Options{
		Listen: d.config.AdminListen, LocalOnly: localOnly(d.config), Pprof: d.config.Pprof, Cmdline: configs.RedactArgs(os.Args), Login: table, Desk: table, Logger: logger,
		TLS:     func() (*tls.Config, error) { return clientTLS(d.config).Config() },
		Figures: admin.NewFigures(sources), Sources: sources,
		Ready: func() (bool, string) {
			ready, why := votable(masters)
			return ready, why + bootstrapNote(d.config)
		},
	})
	if err != nil {
		return err
	}
	d.server = server
	return nil
}

// open serves until close. ctx ends when the daemon drains.
func (d *operatorsDoor) open(ctx context.Context, out io.Writer) {
	if d == nil {
		return
	}
	d.server.Serve()
	context.AfterFunc(ctx, d.server.Drain)
	fmt.Fprintf(out, "metrics and health on %s\n", d.server.URL())
}

// reloadTLS reads the certificates again.
func (d *operatorsDoor) reloadTLS() error {
	if d == nil || d.server == nil {
		return nil
	}
	return d.server.ReloadTLS()
}

// close is for the end of serve, however far it came.
func (d *operatorsDoor) close() {
	if d == nil || d.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	d.server.Shutdown(ctx)
}

// bootstrapNote is for /readyz, which everybody may read: it does not name the source.
func bootstrapNote(config configs.Config) string {
	if config.BootstrapWarning == "" {
		return ""
	}
	return "; note: bootstrap = true stays in force, take it out (the log names its source)"
}

// votable tells whether a quorum may vote now.
func votable(masters *pool.Pool) (bool, string) {
	voters := masters.Group(0).Voters()
	return voters >= masters.Quorum(), fmt.Sprintf("%d of %d masters may vote, %d needed", voters, masters.N(), masters.Quorum())
}
