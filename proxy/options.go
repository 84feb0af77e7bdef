package proxy

// options.go contains the limits of the server and their defaults.

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"redlockd/proxy/preauth"
	"redlockd/proxy/tlsconf"
)

// Options of a Server. The zero value of every field but Listen means its
// default; New rejects invalid options and names field and value.
type Options struct {
	// Listen names the addresses to accept clients on: "host:port" (port 0 lets
	// the kernel choose), "tls:host:port" or "unix:/path". At least one.
	Listen []string
	// UnixMode is the permission of unix sockets. Default 0700: this user only.
	UnixMode fs.FileMode
	// MaxClients is how many connections are served at once; one more gets
	// an error and is closed. Unauthenticated clients may be half of them; one more of
	// these closes the oldest. Default 10 000.
	MaxClients int
	// MaxPerAddress is how many connections one address may have, an IPv6 network
	// of 64 bits counting as one. Unix sockets are not counted. Default 0: no limit.
	MaxPerAddress int
	// MaxConnects is how many connections a second one address may open, counted
	// like MaxPerAddress; after a rest five times as many at once. Those beyond are
	// reset. Default 0: no limit.
	MaxConnects int
	// UnauthMemory is how many bytes of incomplete commands and TLS records all
	// unauthenticated clients may have in memory together; some 2 kB of each are
	// not counted. Beyond it the oldest of them are closed. Default 4 194 304.
	UnauthMemory int
	// ClientMemory is how many bytes of commands, replies, messages and subscriptions
	// all clients may have together, and one user half of that; 16 kB of each client
	// are not counted. Beyond it the client with the most is closed. Default
	// 134 217 728.
	ClientMemory int
	// LocalOnly is protected mode: connections from other machines are rejected with an
	// error that lists the options to set.
	LocalOnly bool
	// TLS is the certificate of listeners with "tls:". Only they need it.
	TLS tlsconf.Files

	// MaxInline is the longest request line in bytes, be it an inline command
	// or the header of an array or a bulk. Default 65 536, as in Redis.
	MaxInline int
	// MaxArgs is the most words a command may have. Default 1 024.
	MaxArgs int
	// MaxBulk is the longest word in bytes. Default 65 536.
	MaxBulk int
	// MaxCommand is the longest command in bytes, framing included. It is also
	// how many bytes of unanswered commands one connection may have read before
	// the server stops reading from it. Default 262 144.
	MaxCommand int
	// Window is how many commands of one connection may be unanswered before
	// the server stops reading from it. Default 1 024.
	Window int
	// MaxUnwritten is how many bytes of replies may wait for one client before
	// none of its commands is started and nothing more is read from it. What is
	// in flight by then may still add its reply. Default 262 144.
	MaxUnwritten int
	// OutputLimit is how many bytes of replies and messages one client may leave
	// unwritten. A client beyond it is closed. One reply may be larger, so that
	// every reply can be read. Default 1 048 576.
	OutputLimit int

	// CommandTimeout is the time from the first byte of a command that did not
	// arrive at once to its last. Default 10 s.
	CommandTimeout time.Duration
	// LoginTimeout is how long a client that needs a login may take for it.
	// Default 10 s.
	LoginTimeout time.Duration
	// WriteTimeout is how long one write may take before the client counts as
	// not reading and is closed. Default 10 s.
	WriteTimeout time.Duration
	// IdleTimeout closes a connection that has nothing in flight and sends
	// nothing for so long. Default 0: never.
	IdleTimeout time.Duration
	// DrainTimeout is how long Serve waits for commands in flight once its
	// context has ended. Default 10 s.
	DrainTimeout time.Duration

	// Logger receives messages for operators. Default slog.Default().
	Logger *slog.Logger
	// Strict panics when a call is answered twice instead of counting and
	// logging it. For tests.
	Strict bool
}

const keepAlivePeriod = 30 * time.Second // finds hosts that vanished without closing

// complete fills in the defaults and checks all values.
func (o *Options) complete() error {
	var errs []error
	if len(o.Listen) == 0 {
		errs = append(errs, errors.New("proxy: Listen is empty: give at least one host:port or unix:/path"))
	}
	number := func(name string, value *int, byDefault, from, to int, whyFrom string) {
		if *value = cmp.Or(*value, byDefault); *value < from || *value > to {
			errs = append(errs, fmt.Errorf("proxy: %s is %d, allowed are %d%s to %d", name, *value, from, whyFrom, to))
		}
	}
	timeout := func(name string, value *time.Duration, byDefault, from time.Duration) {
		if *value = cmp.Or(*value, byDefault); *value < from {
			errs = append(errs, fmt.Errorf("proxy: %s is %s, at least %s is needed", name, *value, from))
		}
	}
	o.UnixMode = cmp.Or(o.UnixMode, 0o700)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.OutputLimit = cmp.Or(o.OutputLimit, 1<<20) // the default of MaxUnwritten depends on it
	number("MaxClients", &o.MaxClients, 10_000, 1, 1<<20, "")
	number("MaxPerAddress", &o.MaxPerAddress, 0, 0, 1<<20, "")
	number("MaxConnects", &o.MaxConnects, 0, 0, 1<<20, "")
	number("UnauthMemory", &o.UnauthMemory, 4<<20, 2*preauth.LargeSize, 1<<30, " (two unfinished commands)")
	number("ClientMemory", &o.ClientMemory, 128<<20, 256<<10, 1<<30, "")
	number("MaxInline", &o.MaxInline, 64<<10, 64, 1<<20, "")
	number("MaxArgs", &o.MaxArgs, 1024, 8, 1<<20, "")
	number("MaxBulk", &o.MaxBulk, 64<<10, 64, 512<<20, "")
	number("MaxCommand", &o.MaxCommand, 256<<10, o.MaxBulk, 1<<30, " (MaxBulk: a command holds at least one word)")
	number("Window", &o.Window, 1024, 1, 1<<20, "")
	number("MaxUnwritten", &o.MaxUnwritten, min(256<<10, o.OutputLimit), 1024, 1<<30, "")
	number("OutputLimit", &o.OutputLimit, 0, o.MaxUnwritten, 1<<30, " (MaxUnwritten: until then commands are started)")
	timeout("CommandTimeout", &o.CommandTimeout, 10*time.Second, time.Millisecond)
	timeout("LoginTimeout", &o.LoginTimeout, preauth.LoginTimeout, time.Millisecond)
	timeout("WriteTimeout", &o.WriteTimeout, 10*time.Second, time.Millisecond)
	timeout("IdleTimeout", &o.IdleTimeout, 0, 0)
	timeout("DrainTimeout", &o.DrainTimeout, 10*time.Second, 0)
	return errors.Join(errs...)
}
