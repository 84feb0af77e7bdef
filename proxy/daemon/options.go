package daemon

// What each part of the daemon receives of the configuration.

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"redlockd/commands/access"
	"redlockd/commands/cli"
	"redlockd/commands/dropin"
	"redlockd/commands/glob"
	"redlockd/commands/tracing"
	"redlockd/configs"
	"redlockd/pool"
	"redlockd/pool/setup"
	"redlockd/proxy"
	"redlockd/proxy/tlsconf"
	"redlockd/redlock"
)

// poolOptions reads the certificates that the masters name; the error is a
// *configs.FieldError for the first master whose files cannot be used.
func poolOptions(config configs.Config, logger *slog.Logger) (pool.Options, error) {
	options := pool.Options{
		Embedded: config.Embedded, Group: config.Group, KeyPrefix: config.KeyPrefix, Prefixes: config.KeyPrefixes, Slots: config.Slots, FollowTo: config.FollowTo,
		MaxTTL: config.MaxTTL, MaxKeep: config.MaxKeep, MasterTimeout: config.MasterTimeout,
		RestartGuardOff: config.RestartGuard == configs.GuardOff, AssumeDurable: config.AssumeDurable,
		Databases: config.Databases, Logger: logger, AwaitBootstrap: true,
	}
	for _, m := range config.Masters {
		master := pool.Master{Name: m.Name, Network: m.Network, Address: m.Address, Username: m.Username, Password: string(m.Password)}
		if m.TLS != nil {
			config, err := m.TLS.Load()
			if err != nil {
				return pool.Options{}, &configs.FieldError{Field: "masters", Value: m.String(), Problem: err.Error()}
			}
			master.TLS, master.ServerName, master.Query = new(atomic.Pointer[tls.Config]), m.TLS.ServerName, m.Query()
			master.TLS.Store(config)
		}
		options.Masters = append(options.Masters, master)
	}
	return options, nil
}

// checkFenceAbove rejects a value above which the masters have no space to start.
func checkFenceAbove(n int64) error {
	if n <= setup.MaxFenceAbove {
		return nil
	}
	return &configs.FieldError{
		Field: "fence-above", Value: strconv.FormatInt(n, 10), Source: "--fence-above",
		Problem: "leaves too few fences below 2^52, where they end", Allowed: fmt.Sprintf("1 to %d", int64(setup.MaxFenceAbove)),
		Advice: "give the highest fence that the protected resources have seen",
	}
}

func lockerOptions(config configs.Config, logger *slog.Logger) redlock.Options {
	return redlock.Options{
		KeyPrefix: config.KeyPrefix, MaxOperations: config.MaxOperations,
		MaxWaiters: config.MaxWaiters, MaxWaitersPerKey: config.MaxWaitersPerKey,
		VolatileIDs: volatileIDs(config), LockInfo: config.LockInfo, Logger: logger,
	}
}

// accessControl has the users that may connect and the scripts that they may send.
func accessControl(config configs.Config) (users *access.Users, scripts *dropin.Recogniser, err error) {
	if users, err = clientUsers(config); err != nil {
		return nil, nil, err
	}
	if scripts, err = dropin.New(config.ScriptClasses); err != nil {
		err = &configs.FieldError{Field: "script-class", Value: strconv.Quote(strings.Join(config.ScriptClasses, " ")), Problem: err.Error()}
	}
	return users, scripts, err
}

// fairKeys reports whether the locks of a key are FAIR without saying so; nil: none are.
func fairKeys(config configs.Config) (func(redlock.Key) bool, error) {
	if config.FairKeys == "" {
		return nil, nil
	}
	pattern, err := glob.New(config.FairKeys)
	if err != nil {
		return nil, &configs.FieldError{Field: "fair-keys", Value: strconv.Quote(config.FairKeys), Problem: err.Error()}
	}
	return func(key redlock.Key) bool { return pattern.Matches(string(key)) }, nil
}

// proxyOptions gives clients drain of the time that shutdown may take.
func proxyOptions(config configs.Config, drain time.Duration, logger *slog.Logger) proxy.Options {
	return proxy.Options{
		Listen: config.Listen, UnixMode: config.UnixMode, DrainTimeout: drain, IdleTimeout: config.ClientTimeout, Logger: logger,
		MaxClients: maxClients(config, openFiles()), MaxPerAddress: config.MaxClientsPerAddress,
		MaxConnects: config.MaxConnects, UnauthMemory: config.UnauthenticatedMemory,
		ClientMemory: config.MaxMemoryClients, OutputLimit: config.ClientOutputLimit,
		LocalOnly: localOnly(config),
		TLS:       clientTLS(config),
	}
}

// clientTLS is the certificate that clients of the port and of the admin endpoint receive.
func clientTLS(config configs.Config) tlsconf.Files {
	return tlsconf.Files{
		CertFile: config.TLSCert, KeyFile: config.TLSKey, CAFile: config.TLSCA,
		ClientAuth: tlsconf.ClientAuth(config.TLSClientAuth),
	}
}

// localOnly is protected mode in force.
func localOnly(config configs.Config) bool {
	return config.ProtectedMode == "on" && !needsLogin(config)
}

func needsLogin(config configs.Config) bool { return config.RequirePass != "" || len(config.Users) > 0 }

// clientUsers are the users of the commands; nil if no password is needed.
func clientUsers(config configs.Config) (*access.Users, error) {
	if !needsLogin(config) {
		return nil, nil
	}
	users, err := access.NewUsers(userList(config, config.Users))
	if err != nil {
		return nil, &configs.FieldError{Field: "users", Value: strconv.Quote(config.UsersFile), Problem: err.Error()}
	}
	return users, nil
}

// userList is the users of the file, and the user default if it has a password.
func userList(config configs.Config, file []configs.User) []access.User {
	var list []access.User
	if config.RequirePass != "" {
		list = append(list, access.Everything("default", string(config.RequirePass)))
	}
	for _, u := range file {
		list = append(list, access.User(u))
	}
	return list
}

// volatileIDs reports whether ids may repeat after a crash; those of embedded masters always may.
func volatileIDs(config configs.Config) bool {
	return config.IDsDurability == configs.IDsVolatile || config.Embedded > 0
}

// warnings are log messages about what this daemon does not promise.
func warnings(config configs.Config, files uint64) []string {
	found := slices.Clone(config.Warnings)
	if clients := maxClients(config, files); clients < config.MaxClients {
		found = append(found, fmt.Sprintf("open files: this process may have %d, so it serves %d clients at once and not max-clients, %d; raise the limit (ulimit -n, LimitNOFILE= of systemd)", files, clients, config.MaxClients))
	}
	if open := slices.IndexFunc(config.Listen, configs.Reachable); open >= 0 && localOnly(config) {
		found = append(found, "protected mode: without requirepass and users only clients on this machine are served, although listen has "+config.Listen[open])
	}
	if config.Embedded > 0 {
		found = append(found, "embedded masters: locks, counters and work end with this process, and the next one gives the same ids again")
	}
	return found
}

// warn logs all warnings once, and repeats those about settings that should not stay
// in force every minute until stop is called.
func warn(config configs.Config, logger *slog.Logger) (stop func()) {
	for _, warning := range warnings(config, openFiles()) {
		logger.Warn(warning)
	}
	if config.BootstrapWarning == "" {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(time.Minute)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				logger.Warn(config.BootstrapWarning)
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func newLogger(config configs.Config, out io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(config.LogLevel)) // one of four words, checked by configs
	options := &slog.HandlerOptions{Level: level}
	if config.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// newTracer sends spans of operations to --otlp-endpoint; nil without it.
func newTracer(config configs.Config, logger *slog.Logger) (*tracing.Tracer, error) {
	if config.OTLPEndpoint == "" {
		return nil, nil
	}
	tracer, err := tracing.New(tracing.Options{Endpoint: config.OTLPEndpoint, Sample: config.OTLPSample, Version: cli.Version(), Logger: logger})
	if err != nil {
		return nil, &configs.FieldError{Field: "otlp-endpoint", Problem: err.Error()}
	}
	return tracer, nil
}

// closeTracer sends the spans that have not been sent.
func closeTracer(tracer *tracing.Tracer, config configs.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), spanTimeout(config))
	defer cancel()
	tracer.Close(ctx)
}

// spanTimeout is the share of --drain-timeout for spans that have not been sent.
func spanTimeout(config configs.Config) time.Duration {
	if config.OTLPEndpoint == "" {
		return 0
	}
	return min(time.Second, config.DrainTimeout/4)
}

// port is the TCP port in INFO: that of the first address with one, else 0.
func port(config configs.Config) int {
	for _, address := range config.Listen {
		if _, text, err := net.SplitHostPort(strings.TrimPrefix(address, "tls:")); err == nil {
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
		}
	}
	return 0
}

// filesBeside are open files beside those of clients and masters: listeners, the admin endpoint
// with its 256 connections, files that are read again, the runtime's own.
const filesBeside = 300

// openFiles returns the number of files that this process may have open. Go has raised the soft limit to the
// hard one.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}

// maxClients is --max-clients, or fewer where the process may not open so many files: clients
// must not take those over which the daemon reaches its masters again.
func maxClients(config configs.Config, files uint64) int {
	others := uint64(filesBeside)
	for _, group := range config.Each() {
		others += uint64(2 * len(group.Masters) * config.Databases) // of each database a lane, and one for events
	}
	clients := files / 2 // if there are few
	if files > 2*others {
		clients = files - others
	}
	return int(max(1, min(uint64(config.MaxClients), clients)))
}
