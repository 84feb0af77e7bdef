package preauth

// buffer.go stores the bytes of a command until it is complete: in a pooled medium buffer
// while they fit, and in none while there are none. An unauthenticated client gets a small
// buffer, and larger ones only from the memory limit.

import (
	"slices"
	"sync"
)

const (
	smallSize  = 2 << 10 // holds every honest login: names and passwords have some hundred bytes
	mediumSize = 8 << 10 // holds what a read can add to a command that fits redcon's buffer
	// LargeSize holds the longest unauthenticated command and the bytes that exceed it.
	LargeSize = maxCommand + smallSize
)

// sizes of pooled buffers; small and medium are indexes.
var sizes = [...]int{smallSize, mediumSize, LargeSize}

const small, medium = 0, 1

// Memory is one connection's part of a limit that all unauthenticated clients share.
type Memory interface {
	Grow(size int) bool // makes it at least size bytes; false: it was evicted
	Release()           // gives it back; it may grow again
	End()               // gives it back for good
}

// Pools are the buffers that all connections of a server share, by size. The zero value is
// ready.
type Pools [len(sizes)]sync.Pool // of *[]byte

// Buffer holds the commands of one connection that are not handed over yet. The first of
// them starts it.
type Buffer struct {
	Pools  *Pools
	Memory Memory // of an unauthenticated client's buffer beyond a small one

	pooled   *[]byte // the pooled memory of data, to be returned; nil if data outgrew it
	size     int     // of pooled, an index of sizes
	data     []byte
	start    int  // data[start:] is not handed over yet
	reserved bool // data is counted in Memory
}

// Bytes returns those that are not handed over yet.
func (b *Buffer) Bytes() []byte { return b.data[b.start:] }

func (b *Buffer) Empty() bool { return b.start == len(b.data) }

// Consume drops the first n bytes.
func (b *Buffer) Consume(n int) { b.start += n }

// Held is the memory in bytes, with bytes that are not used; large is without that of pooled buffers.
func (b *Buffer) Held() (all, large int) {
	if b.pooled == nil {
		large = cap(b.data)
	}
	return cap(b.data), large
}

// Add stores bytes from the socket. It never holds more than one incomplete command and one
// read, since nothing is read while it holds a complete one.
func (b *Buffer) Add(p []byte) {
	if len(p) == 0 {
		return
	}
	if b.data == nil {
		b.moveTo(medium)
	}
	b.compact()
	before := cap(b.data)
	b.data = append(b.data, p...)
	if cap(b.data) != before { // append has reallocated it
		b.returnPooled()
	}
}

// Space returns the space for the next bytes of an unauthenticated client, or false if
// there is none; Filled tells how many were read into it. A command that outgrows its
// buffer moves to a larger one: it is copied twice at most, and the smaller buffer is free
// at once.
func (b *Buffer) Space() (free []byte, ok bool) {
	if b.data == nil {
		b.moveTo(small)
	}
	b.compact()
	if len(b.data) == cap(b.data) && !b.grow() {
		return nil, false
	}
	return b.data[len(b.data):cap(b.data)], true
}

// Filled adds the n bytes that were read into the space.
func (b *Buffer) Filled(n int) { b.data = b.data[:len(b.data)+n] }

// grow moves an unauthenticated command to the next larger buffer.
func (b *Buffer) grow() bool {
	next := slices.IndexFunc(sizes[:], func(size int) bool { return size > cap(b.data) })
	if next < 0 || !b.Memory.Grow(sizes[next]) {
		return false
	}
	b.reserved = true
	b.moveTo(next)
	return true
}

// moveTo copies the bytes to a pooled buffer of that size, and returns the former one.
func (b *Buffer) moveTo(size int) {
	pooled, ok := b.Pools[size].Get().(*[]byte)
	if !ok {
		pooled = new([]byte)
		*pooled = make([]byte, sizes[size])
	}
	data := append((*pooled)[:0], b.data...)
	b.returnPooled()
	b.pooled, b.size, b.data = pooled, size, data
}

// compact moves the bytes that are not handed over yet to the start.
func (b *Buffer) compact() {
	if b.start > 0 {
		b.data = b.data[:copy(b.data, b.data[b.start:])]
		b.start = 0
	}
}

// Release returns the memory to the pools: an idle connection holds none.
func (b *Buffer) Release() {
	b.EndReservation()
	b.returnPooled()
	b.data, b.start = nil, 0
}

// EndReservation frees the reservation of unauthenticated memory.
func (b *Buffer) EndReservation() {
	if b.reserved {
		b.reserved = false
		b.Memory.Release()
	}
}

// returnPooled returns the memory that data does not use anymore.
func (b *Buffer) returnPooled() {
	if b.pooled != nil {
		b.Pools[b.size].Put(b.pooled)
		b.pooled = nil
	}
}
