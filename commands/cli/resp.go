// The command line's connection to a daemon: one connection, one command at a time,
// RESP2.

package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"redlockd/proxy/resp"
)

// dialTimeout is for a connection and its login.
const dialTimeout = 5 * time.Second

// daemons serve the same masters: a token taken through one works
// through all, so the next one is used when one fails.
type daemons struct {
	addresses          []string
	username, password string
	database           int
	authorities        *x509.CertPool // for tls: addresses; nil = the machine's

	next int
	conn net.Conn // nil before the first command and after a failure
	in   *resp.Reader
	sent time.Time // just before the last command was written
}

// do sends one command and waits for its answer at most timeout: nil, an int64, a string or
// an []any. An error reply is a resp.Error; after any other error it is unknown whether the
// command was executed.
func (d *daemons) do(ctx context.Context, timeout time.Duration, words ...string) (any, error) {
	replies, err := d.doAll(ctx, timeout, words)
	return first(replies, err)
}

// doAll sends commands in one write and waits for their answers. An error reply is among the
// answers.
func (d *daemons) doAll(ctx context.Context, timeout time.Duration, commands ...[]string) ([]any, error) {
	if d.conn == nil {
		if err := d.connect(ctx); err != nil {
			return nil, err
		}
	}
	replies, err := d.roundTrip(ctx, timeout, commands...)
	if err != nil {
		d.close()
	}
	return replies, err
}

// first is the answer to one command.
func first(replies []any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if refused, ok := replies[0].(resp.Error); ok {
		return nil, refused
	}
	return replies[0], nil
}

func (d *daemons) close() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}

func (d *daemons) address() string { return d.addresses[max(d.next-1, 0)%len(d.addresses)] }

// connect dials the addresses in turn, beginning where it left off.
func (d *daemons) connect(ctx context.Context) error {
	var errs []error
	for range d.addresses {
		address := d.addresses[d.next%len(d.addresses)]
		d.next++
		err := d.open(ctx, address)
		if err == nil {
			return nil
		}
		d.close()
		var refused resp.Error
		if errors.As(err, &refused) {
			return err // every daemon would reply so
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *daemons) open(ctx context.Context, address string) error {
	conn, err := d.dial(ctx, address)
	if err != nil {
		return err
	}
	d.conn = conn
	d.in = resp.NewReader(d.conn)
	d.in.RESP2, d.in.MaxBytes, d.in.MaxItems = true, 16<<20, 1<<20 // DWAITERS shows up to a thousand requests, each with its keys
	if d.password != "" {
		words := []string{"AUTH", d.password}
		if d.username != "" {
			words = []string{"AUTH", d.username, d.password}
		}
		if _, err := first(d.roundTrip(ctx, dialTimeout, words)); err != nil {
			return err
		}
	}
	_, err = first(d.roundTrip(ctx, dialTimeout, []string{"SELECT", strconv.Itoa(d.database)}))
	return err
}

func (d *daemons) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return dialer.DialContext(ctx, "unix", path)
	}
	if address, ok := strings.CutPrefix(address, "tls:"); ok {
		secure := tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: d.authorities, MinVersion: tls.VersionTLS12}}
		return secure.DialContext(ctx, "tcp", address)
	}
	return dialer.DialContext(ctx, "tcp", address)
}

func (d *daemons) roundTrip(ctx context.Context, timeout time.Duration, commands ...[]string) (replies []any, err error) {
	conn := d.conn
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // a closed one needs no waking
	var request []byte
	for _, words := range commands {
		request = resp.AppendCommand(request, words...)
	}
	d.sent = time.Now()
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	for range commands {
		reply, err := d.in.ReadValue()
		if err != nil {
			return nil, readError(err)
		}
		replies = append(replies, reply.Any())
	}
	return replies, nil
}

// readError describes an answer that is not RESP.
func readError(err error) error {
	var bad *resp.Malformed
	switch {
	case !errors.As(err, &bad):
		return err
	case bad.Text == "":
		return errors.New("the daemon's answer is not RESP")
	case bad.Kind == '$':
		return fmt.Errorf("the daemon's answer has a string of %.20q bytes", bad.Text)
	case bad.Kind == '*':
		return fmt.Errorf("the daemon's answer has a list of %.20q items", bad.Text)
	}
	return fmt.Errorf("the daemon's answer is not RESP2: %.40q", bad.Text)
}
