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
	recordHeader = 5       // type, version, length
	freeRecords  = 3 << 10 // a hello with post-quantum keys has less than 2 kB
	// handshakeCost is what a handshake holds from the hello to its end, with its
	// stack (measured: 25 kB). An honest one lasts for a round trip.
	handshakeCost = 24 << 10
)

// tlsRecords is the socket below TLS. Read belongs to one goroutine.
type records struct {
	net.Conn
	guard   *guard // set before the first Read
	share   share
	head    [recordHeader]byte // of the record that passes by
	have    int                // bytes of it
	left    int                // of the record's body
	greeted atomic.Bool        // the handshake is done
	total   int                // bytes that crypto/tls holds by now
}

// recordsOf returns the layer below a connection with TLS, nil for one without.
func recordsOf(conn net.Conn) *records {
	if c, ok := conn.(secured); ok {
		return c.NetConn().(*records)
	}
	return nil
}

func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if !r.follow(p[:n]) {
		return 0, errCrowded
	}
	return n, err
}

// follow finds the headers of records in the bytes that pass by; it returns false if a
// record exceeds the memory limit.
func (r *records) follow(p []byte) bool {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.left, p = r.left-n, p[n:]
			continue
		}
		n := copy(r.head[r.have:], p)
		r.have, p = r.have+n, p[n:]
		if r.have == recordHeader {
			r.have, r.left = 0, int(r.head[3])<<8|int(r.head[4])
			if !r.charge(r.left) {
				return false
			}
		}
	}
	return true
}

// countRecord counts a record of size bytes; it returns false if that exceeds the limit.
func (r *records) charge(size int) bool {
	if r.greeted.Load() {
		r.total = max(r.total, size)
	} else {
		r.total += size // handshake messages are collected
	}
	return r.settle()
}

// updateReservation sets the reservation to the memory of crypto/tls, and to nothing for an
// authenticated client.
func (r *records) settle() bool {
	if !r.stranger() {
		r.total = 0
		r.share.release()
		return true
	}
	size := 0
	if r.total > freeRecords {
		size = r.total * 3 / 2 // a bytes.Buffer may be half as large again as what it was made for
	}
	if !r.greeted.Load() {
		size += handshakeCost
	}
	return size == 0 || r.share.raise(size)
}

// finishHandshake frees the memory that only the handshake needed.
func (r *records) settleGreeted() bool {
	r.greeted.Store(true)
	r.share.release()
	return r.settle()
}

func (r *records) stranger() bool { return !r.greeted.Load() || !r.guard.receiver.known() }

// evict closes the connection: only that frees the memory of crypto/tls.
func (r *records) evict() {
	if r.stranger() {
		r.guard.Close()
	}
}
