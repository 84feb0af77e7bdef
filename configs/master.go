package configs

// master.go contains Master, one configured master, which hides its password in logs and
// errors.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
)

// Master is one Redis server that votes. However it is printed, logged or
// marshalled as a whole, the output contains only its name and address.
type Master struct {
	// Name is part of the group's identity on the masters and so the same in
	// all daemons; by default the address as it was given, port included.
	Name     string
	Network  string // "tcp" or "unix"
	Address  string // "host:port", or the path of the socket
	Username string // "" = the default user
	Password string // "" = none
	TLS      *TLS   // nil = a plain connection
}

// TLS configures the certificates of a rediss:// master and of this daemon.
type TLS struct {
	CAFile     string // PEM; "" = the authorities this machine trusts
	CertFile   string // PEM of this daemon's certificate, together with KeyFile
	KeyFile    string // PEM
	ServerName string // the name its certificate must carry; "" = the host
}

// String is "name=address", or the address alone where it is the name.
func (m Master) String() string {
	address := m.Address
	if m.Network == "unix" {
		address = "unix:" + address
	}
	if m.Name == address || m.Name == "" {
		return address
	}
	return m.Name + "=" + address
}

// Format prints String for every verb: %v, %+v and %#v of a struct would
// otherwise show the password.
func (m Master) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, m.String())
}

// MarshalText returns String, for encoding/json and slog.
func (m Master) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Load reads the files and returns what a connection needs. The error names
// the file that could not be used.
func (t TLS) Load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca: %w; name a readable PEM file", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate; name a PEM file", t.CAFile)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cert %s with key %s cannot be used", t.CertFile, t.KeyFile), err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
