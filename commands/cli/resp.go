// The command line's connection to a daemon: one connection, one command at a time,
// RESP2.

package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// dialTimeout is for a connection and its login.
const dialTimeout = 5 * time.Second

const (
	maxReplyBytes = 1 << 20 // of one reply
	maxReplyItems = 1 << 16
	maxReplyDepth = 16
)

// refusal is an error that the daemon answered.
type refusal string

func (r refusal) Error() string { return string(r) }

func (r refusal) code() string {
	code, _, _ := strings.Cut(string(r), " ")
	return code
}

// answer is nil, an int64, a string or an []answer.
type answer any

// daemons are those that serve the same masters: a token taken through one works
// through all, so the next one is used when one fails.
type daemons struct {
	addresses          []string
	username, password string
	database           int
	authorities        *x509.CertPool // for tls: addresses; nil = the machine's

	next int
	conn net.Conn // nil before the first command and after a failure
	in   *bufio.Reader
	sent time.Time // just before the last command was written
}

// do sends one command and waits for its answer at most timeout. After an error that is
// no refusal it is unknown whether the command was executed.
func (d *daemons) do(ctx context.Context, timeout time.Duration, words ...string) (answer, error) {
	if d.conn == nil {
		if err := d.connect(ctx); err != nil {
			return nil, err
		}
	}
	reply, err := d.roundTrip(ctx, timeout, words)
	var refused refusal
	if err != nil && !errors.As(err, &refused) {
		d.close()
	}
	return reply, err
}

func (d *daemons) close() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}

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
		var refused refusal
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
	d.in = bufio.NewReader(d.conn)
	if d.password != "" {
		words := []string{"AUTH", d.password}
		if d.username != "" {
			words = []string{"AUTH", d.username, d.password}
		}
		if _, err := d.roundTrip(ctx, dialTimeout, words); err != nil {
			return err
		}
	}
	_, err = d.roundTrip(ctx, dialTimeout, []string{"SELECT", strconv.Itoa(d.database)})
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

func (d *daemons) roundTrip(ctx context.Context, timeout time.Duration, words []string) (answer, error) {
	conn := d.conn
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // a closed one needs no waking
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	d.sent = time.Now()
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return nil, err
	}
	return d.read(0)
}

func (d *daemons) read(depth int) (answer, error) {
	line, err := d.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" || depth > maxReplyDepth {
		return nil, errors.New("the daemon's answer is not RESP")
	}
	switch text := line[1:]; line[0] {
	case '+':
		return text, nil
	case '-':
		return nil, refusal(text)
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$':
		return d.readBulk(text)
	case '*':
		return d.readArray(text, depth)
	}
	return nil, fmt.Errorf("the daemon's answer is not RESP2: %.40q", line)
}

func (d *daemons) readBulk(length string) (answer, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < -1 || n > maxReplyBytes {
		return nil, fmt.Errorf("the daemon's answer has a string of %.20q bytes", length)
	}
	if n == -1 {
		return nil, nil
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(d.in, text); err != nil {
		return nil, err
	}
	return string(text[:n]), nil
}

func (d *daemons) readArray(length string, depth int) (answer, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < -1 || n > maxReplyItems {
		return nil, fmt.Errorf("the daemon's answer has a list of %.20q items", length)
	}
	if n == -1 {
		return nil, nil
	}
	items := make([]answer, 0, min(n, 64))
	for range n {
		item, err := d.read(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
