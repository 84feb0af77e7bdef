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
	"redlockd/proxy/resp"
	"redlockd/proxy/tlsconf"
)

// Options of a Server. The zero value of every field but Listen means its default, see
// complete; New rejects invalid options and names field and value.
type Options struct {
	Listen   []string    // "host:port" (port 0: the kernel chooses), "tls:host:port" or "unix:/path"; at least one
	UnixMode fs.FileMode // of unix sockets; default: this user only

	// MaxClients connections are served at once; one more gets an error and is closed.
	// Unauthenticated clients may be half of them; one more of these closes the oldest.
	MaxClients    int
	MaxPerAddress int // connections of one address, or of an IPv6 network of 64 bits; 0 is no limit
	// MaxConnects is how many connections a second one address may open, after a rest five
	// times as many at once. Those beyond are reset. 0 is no limit.
	MaxConnects int
	// UnauthMemory is how many bytes of incomplete commands and TLS records all
	// unauthenticated clients may have together; some 2 kB of each are not counted.
	// Beyond it the oldest of them are closed.
	UnauthMemory int
	// ClientMemory is how many bytes of commands, replies, messages and subscriptions all
	// clients may have together, and one user half of that; 16 kB of each client are not
	// counted. Beyond it the client with the most is closed.
	ClientMemory int
	LocalOnly    bool          // protected mode: other machines get an error that lists the options to set
	TLS          tlsconf.Files // of listeners with "tls:"

	// Window is how many commands one connection may have unanswered before the server stops
	// reading from it. So does one with requestLimits.MaxCommand bytes of them.
	Window int
	// MaxUnwritten is how many bytes of replies may wait for one client before none of its
	// commands is started and nothing more is read from it. What is in flight by then may
	// still add its reply.
	MaxUnwritten int
	// OutputLimit is how many bytes of replies and messages one client may leave unwritten.
	// A client beyond it is closed. One reply may be larger, so that every reply can be read.
	OutputLimit int

	CommandTimeout time.Duration // from the first byte of a command that did not arrive at once to its last
	LoginTimeout   time.Duration // for a client that needs a login
	WriteTimeout   time.Duration // of one write; then the client counts as not reading and is closed
	IdleTimeout    time.Duration // closes a connection with nothing in flight that sends nothing for so long; 0 is none
	DrainTimeout   time.Duration // how long Serve waits for commands in flight once its context has ended

	restAfter time.Duration // an idle connection rests, see proxy/guard; tests change it

	Logger *slog.Logger // for operators; default slog.Default()
}

// requestLimits bound every command. MaxLine is Redis' own.
var requestLimits = resp.Limits{MaxLine: 64 << 10, MaxArgs: 1024, MaxBulk: 64 << 10, MaxCommand: 256 << 10}

const keepAlivePeriod = 30 * time.Second // finds hosts that vanished without closing

// restAfter is long beside the pauses of clients that work: a rest costs some 90 µs of processor
// time, and the first command after it takes 40 µs longer.
const restAfter = 10 * time.Second

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
	o.restAfter = cmp.Or(o.restAfter, restAfter)
	o.OutputLimit = cmp.Or(o.OutputLimit, 1<<20) // the default of MaxUnwritten depends on it
	number("MaxClients", &o.MaxClients, 10_000, 1, 1<<20, "")
	number("MaxPerAddress", &o.MaxPerAddress, 0, 0, 1<<20, "")
	number("MaxConnects", &o.MaxConnects, 0, 0, 1<<20, "")
	number("UnauthMemory", &o.UnauthMemory, 4<<20, 2*preauth.LargeSize, 1<<30, " (two unfinished commands)")
	number("ClientMemory", &o.ClientMemory, 128<<20, 256<<10, 1<<30, "")
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
