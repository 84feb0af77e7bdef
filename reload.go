// What does SIGHUP read again? The users file and the certificates for clients:
// what has to change while clients are connected. Everything else is settled at
// the start.
package main

import (
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"redlockd/commands"
	"redlockd/configs"
	"redlockd/proxy"
)

// reloader knows what to read and who is told.
type reloader struct {
	config configs.Config
	users  *commands.Users // nil where nobody needs a password
	server *proxy.Server
	door   *operatorsDoor
	logger *slog.Logger
}

// onHangup reloads at every SIGHUP until the function it returns is called,
// which waits for a reload under way.
func onHangup(r *reloader) (stop func()) {
	hangups := make(chan os.Signal, 1) // 1: those that come during a reload are one
	done := make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go r.reloadOn(hangups, done)
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}

func (r *reloader) reloadOn(hangups <-chan os.Signal, done chan<- struct{}) {
	defer close(done)
	for range hangups {
		r.reload()
	}
}

// reload puts in force what can be read; what cannot leaves the former in force.
func (r *reloader) reload() {
	if r.config.UsersFile != "" {
		r.report("users", r.config.UsersFile, r.reloadUsers())
	}
	if r.config.TLSCert != "" {
		r.report("certificates", r.config.TLSCert, errors.Join(r.server.ReloadTLS(), r.door.reloadTLS()))
	}
	if r.config.UsersFile == "" && r.config.TLSCert == "" {
		r.logger.Info("SIGHUP: nothing to read again, there are no users file and no certificates")
	}
}

func (r *reloader) report(what, path string, err error) {
	if err != nil {
		r.logger.Error("SIGHUP: "+what+" not read again, the former stay in force", "file", path, "cause", err)
		return
	}
	r.logger.Info("SIGHUP: "+what+" read again", "file", path)
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
