package daemon

// What SIGHUP reloads: the users file and the certificates for clients and masters, which must
// change while clients are connected. All other settings are fixed at the start.

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"redlockd/commands/access"
	"redlockd/configs"
	"redlockd/proxy"
)

// reloader holds what SIGHUP reads again and the parts that receive it.
type reloader struct {
	config   configs.Config
	users    *access.Users // nil if no password is needed
	server   *proxy.Server
	endpoint *adminServer
	masters  []masterTLS
	logger   *slog.Logger
}

// hangups receives SIGHUP from now on: while the daemon starts, too, it must not end the process.
func hangups() chan os.Signal {
	signals := make(chan os.Signal, 1) // 1: signals during a reload count as one
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}

// reloadTimeout bounds the wait for a reload at the end: a file of a mount that does not answer,
// or a named pipe, may never be read.
const reloadTimeout = time.Second

// onHangup reloads at every SIGHUP until stop is called, which waits for a reload
// in progress.
func onHangup(hangups chan os.Signal, r *reloader) (stop func()) {
	done := make(chan struct{})
	go r.reloadOn(hangups, done)
	return func() {
		signal.Stop(hangups)
		close(hangups)
		select {
		case <-done:
		case <-time.After(reloadTimeout):
			r.logger.Warn("a reload has not ended: its files cannot be read in time")
		}
	}
}

func (r *reloader) reloadOn(hangups <-chan os.Signal, done chan<- struct{}) {
	defer close(done)
	for range hangups {
		r.reload()
	}
}

// reload replaces what can be read; what cannot be read keeps its previous value.
func (r *reloader) reload() {
	if r.config.UsersFile != "" {
		r.report("users", r.config.UsersFile, r.reloadUsers())
	}
	if r.config.TLSCert != "" {
		r.report("certificates", r.config.TLSCert, cmp.Or(r.server.ReloadTLS(), r.endpoint.reloadTLS()))
	}
	masters := r.reloadMasters()
	if r.config.UsersFile == "" && r.config.TLSCert == "" && !masters {
		r.logger.Info("nothing to reload: no users file and no certificates are configured")
	}
}

// reloadMasters reads the files for masters, each set of them once. It reports whether there are any.
func (r *reloader) reloadMasters() bool {
	read := map[configs.TLS]*tls.Config{{}: nil}
	for _, m := range r.masters {
		config, known := read[m.files]
		if !known {
			var err error
			config, err = m.files.Load()
			read[m.files] = config // nil: it is reported once
			r.report("certificates for masters", cmp.Or(m.files.CertFile, m.files.CAFile), err)
		}
		if config != nil {
			m.inUse.Store(config)
		}
	}
	return len(read) > 1
}

func (r *reloader) report(what, path string, err error) {
	if err != nil {
		r.logger.Error("reload failed; keeping previous "+what, "file", path, "err", err)
		return
	}
	r.logger.Info(what+" reloaded", "file", path)
}

func (r *reloader) reloadUsers() error {
	file, err := configs.ReadUsers(r.config.UsersFile)
	if err != nil {
		return err
	}
	config := r.config
	config.Users = file
	if err := config.Validate(); err != nil {
		return err
	}
	return r.users.Replace(userList(config, file))
}
