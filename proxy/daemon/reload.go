package daemon

// What SIGHUP reloads: the users file and the certificates for clients, which must
// change while clients are connected. All other settings are fixed at the start.

import (
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

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
	logger   *slog.Logger
}

// takeHangups takes over SIGHUP until stop is called. One that comes before the first reload
// waits for it: its default would end the process.
func takeHangups() (hangups chan os.Signal, stop func()) {
	hangups = make(chan os.Signal, 1) // 1: signals during a reload count as one
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups, func() { signal.Stop(hangups) }
}

// reloadOn reloads at every SIGHUP until stop is called, which waits for a reload
// in progress.
func (r *reloader) reloadOn(hangups <-chan os.Signal) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-hangups:
				r.reload()
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// reload replaces what can be read; what cannot be read keeps its previous value.
func (r *reloader) reload() {
	if r.config.UsersFile != "" {
		r.report("users", r.config.UsersFile, r.reloadUsers())
	}
	if r.config.TLSCert != "" {
		r.report("certificates", r.config.TLSCert, errors.Join(r.server.ReloadTLS(), r.endpoint.reloadTLS()))
	}
	if r.config.UsersFile == "" && r.config.TLSCert == "" {
		r.logger.Info("nothing to reload: no users file and no certificates are configured")
	}
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
