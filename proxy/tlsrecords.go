package proxy

// tlsrecords.go counts the memory that TLS uses for an unauthenticated client. crypto/tls
// allocates a whole record, 16 kB, as soon as it has read its five header bytes. It never
// frees that, and collects handshake messages of up to 64 kB from records. So the lengths
// are read as they pass by, and all memory beyond a hello of usual size is reserved from
// the limit of unauthenticated clients.

import (
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

// tlsRecords is the socket below TLS. Read belongs to one goroutine.
type tlsRecords struct {
	net.Conn
	guard         *guardConn // set before the first Read
	memory        memReservation
	head          [recordHeader]byte // of the record that passes by
	headBytes     int                // bytes of it
	bodyLeft      int                // of the record's body
	handshakeDone atomic.Bool        // the handshake is done
	total         int                // bytes that crypto/tls holds by now
}

// recordsOf returns the layer below a connection with TLS, nil for one without.
func recordsOf(conn net.Conn) *tlsRecords {
	if c, ok := conn.(tlsConn); ok {
		return c.NetConn().(*tlsRecords)
	}
	return nil
}

func (r *tlsRecords) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if !r.follow(p[:n]) {
		return 0, errUnauthMemory
	}
	return n, err
}

// follow finds the headers of records in the bytes that pass by; it returns false if a
// record exceeds the memory limit.
func (r *tlsRecords) follow(p []byte) bool {
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
func (r *tlsRecords) countRecord(size int) bool {
	if r.handshakeDone.Load() {
		r.total = max(r.total, size)
	} else {
		r.total += size // handshake messages are collected
	}
	return r.updateReservation()
}

// updateReservation sets the reservation to the memory of crypto/tls, and to nothing for an
// authenticated client.
func (r *tlsRecords) updateReservation() bool {
	if !r.unauth() {
		r.total = 0
		r.memory.release()
		return true
	}
	size := 0
	if r.total > freeRecordBytes {
		size = r.total * 3 / 2 // a bytes.Buffer may be half as large again as what it was made for
	}
	if !r.handshakeDone.Load() {
		size += handshakeCost
	}
	return size == 0 || r.memory.grow(size)
}

// finishHandshake frees the memory that only the handshake needed.
func (r *tlsRecords) finishHandshake() bool {
	r.handshakeDone.Store(true)
	r.memory.release()
	return r.updateReservation()
}

func (r *tlsRecords) unauth() bool { return !r.handshakeDone.Load() || !r.guard.events.authenticated() }

// evict closes the connection: only that frees the memory of crypto/tls.
func (r *tlsRecords) evict() {
	if r.unauth() {
		r.guard.Close()
	}
}
