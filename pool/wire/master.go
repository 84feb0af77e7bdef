// Master: where a server is, how to log in to it, and the socket to it.

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"
)

// Master is one Redis or Valkey server that votes. Masters are independent of
// each other and reached directly: a balancer that re-dials behind a
// connection would let one vote come from two servers.
type Master struct {
	Name     string // unique; part of the fingerprint that all daemons must share
	Network  string // "tcp" or "unix"
	Address  string // host:port or socket path
	Username string
	Password string

	TLS        *atomic.Pointer[tls.Config] // nil = plain; what is stored counts from the next connection on
	ServerName string                      // that its certificate must have; "" = the host of its address
	Query      string                      // of its rediss:// URL: the files
}

// String is the entry of a list of masters that daemons and commands accept, with a word in the place of
// the password.
func (m Master) String() string {
	plain := m.Address
	if m.Network == "unix" {
		plain = "unix:" + m.Address
	}
	place, login := plain, ""
	if m.Password != "" {
		login = url.UserPassword(m.Username, "PASSWORD").String() + "@"
	}
	switch {
	case m.TLS != nil:
		place = "rediss://" + login + m.Address
		if m.Query != "" {
			place += "?" + m.Query
		}
	case login != "" && m.Network == "unix":
		place = "unix://" + login + m.Address
	case login != "":
		place = "redis://" + login + m.Address
	}
	if m.Name == plain { // the name of an entry without one
		return place
	}
	return m.Name + "=" + place
}

// WithLoginOf returns the master, reached with the login and the certificates of another one. It
// must prove its own host, unless the other one proves a name that is not its host.
func (m Master) WithLoginOf(other Master) Master {
	m.Username, m.Password, m.TLS, m.ServerName, m.Query = other.Username, other.Password, other.TLS, other.ServerName, other.Query
	if host, _, err := net.SplitHostPort(other.Address); err == nil && m.ServerName == host {
		m.ServerName = ""
	}
	return m
}

// dialMaster opens the socket. It finishes TLS before anything else is read, so that a wrong
// certificate is reported as such and not as a broken greeting.
func dialMaster(ctx context.Context, m Master, timeout time.Duration) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}
	raw, err := dialer.DialContext(ctx, m.Network, m.Address)
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("%w: the limit of this program, not of the master: raise it (ulimit -n, LimitNOFILE)", err)
	}
	if err != nil || m.TLS == nil {
		return raw, err
	}
	config := m.TLS.Load().Clone()
	if config.ServerName = m.ServerName; config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(m.Address); err != nil {
			config.ServerName = m.Address
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout) // a server without TLS waits for the end of a line
	defer cancel()
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return conn, nil
}
