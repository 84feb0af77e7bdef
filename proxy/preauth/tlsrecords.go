package preauth

// tlsrecords.go counts the memory that TLS uses for an unauthenticated client. crypto/tls
// allocates a whole record, 16 kB, as soon as it has read its five header bytes. It never
// frees that, and collects handshake messages of up to 64 kB from records. So the lengths
// are read as they pass by, and all memory beyond a hello of usual size is reserved from
// the limit of unauthenticated clients.

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync/atomic"
)

const (
	recordHeader    = 5       // type, version, length
	freeRecordBytes = 3 << 10 // a hello with post-quantum keys has less than 2 kB
	// handshakeCost is what a handshake holds from the hello to its end, with its
	// stack (measured: 25 kB). An honest one lasts for a round trip.
	handshakeCost = 24 << 10
)

// TLSConn is a client's connection with TLS.
type TLSConn struct {
	*tls.Conn
	records *records
}

// WrapTLS puts TLS over a socket.
func WrapTLS(conn net.Conn, config *tls.Config) *TLSConn {
	r := &records{Conn: conn}
	return &TLSConn{Conn: tls.Server(r, config), records: r}
}

// Client is the connection that the memory is counted for.
type Client interface {
	Authenticated() bool
	Close() error
}

// Attach counts the memory for a client; call it before the first Read.
func (c *TLSConn) Attach(client Client, reserve func(evict func()) Memory) {
	c.records.client, c.records.memory = client, reserve(c.records.evict)
}

// FinishHandshake frees the memory that only the handshake needed.
func (c *TLSConn) FinishHandshake() error {
	r := c.records
	r.handshakeDone.Store(true)
	r.memory.Release()
	if !r.updateReservation() {
		return errMemory
	}
	return nil
}

// PeerCertificates returns the certificates that the client sent, none before the end of the handshake.
func (c *TLSConn) PeerCertificates() []*x509.Certificate {
	if !c.records.handshakeDone.Load() {
		return nil
	}
	return c.ConnectionState().PeerCertificates
}

// End frees the memory for good.
func (c *TLSConn) End() { c.records.memory.End() }

// Close closes the socket at once: the alert that crypto/tls sends first may wait seconds
// for a client that does not read.
func (c *TLSConn) Close() error { return c.records.Conn.Close() }

// records is the socket below TLS. Read belongs to one goroutine.
type records struct {
	net.Conn
	client        Client
	memory        Memory
	head          [recordHeader]byte // of the record that passes by
	headBytes     int                // bytes of it
	bodyLeft      int                // of the record's body
	handshakeDone atomic.Bool        // the handshake is done
	total         int                // bytes that crypto/tls holds by now
}

func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if !r.follow(p[:n]) {
		return 0, errMemory
	}
	return n, err
}

// follow finds the headers of records in the bytes that pass by; it returns false if a
// record exceeds the memory limit.
func (r *records) follow(p []byte) bool {
	for len(p) > 0 {
		if r.bodyLeft > 0 {
			n := min(r.bodyLeft, len(p))
			r.bodyLeft, p = r.bodyLeft-n, p[n:]
			continue
		}
		n := copy(r.head[r.headBytes:], p)
		r.headBytes, p = r.headBytes+n, p[n:]
		if r.headBytes == recordHeader {
			r.headBytes, r.bodyLeft = 0, int(r.head[3])<<8|int(r.head[4])
			if !r.countRecord(r.bodyLeft) {
				return false
			}
		}
	}
	return true
}

// countRecord counts a record of size bytes; it returns false if that exceeds the limit.
func (r *records) countRecord(size int) bool {
	if r.handshakeDone.Load() {
		r.total = max(r.total, size)
	} else {
		r.total += size // handshake messages are collected
	}
	return r.updateReservation()
}

// updateReservation sets the reservation to the memory of crypto/tls, and to nothing for an
// authenticated client.
func (r *records) updateReservation() bool {
	if !r.unauth() {
		r.total = 0
		r.memory.Release()
		return true
	}
	size := 0
	if r.total > freeRecordBytes {
		size = r.total * 3 / 2 // a bytes.Buffer may be half as large again as what it was made for
	}
	if !r.handshakeDone.Load() {
		size += handshakeCost
	}
	return size == 0 || r.memory.Grow(size)
}

func (r *records) unauth() bool { return !r.handshakeDone.Load() || !r.client.Authenticated() }

// evict closes the connection: only that frees the memory of crypto/tls.
func (r *records) evict() {
	if r.unauth() {
		_ = r.client.Close() // of a socket that may be closed already
	}
}
