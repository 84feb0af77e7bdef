package preauth

// buffer.go stores the bytes of a command until it is complete: in a pooled medium buffer
// while they fit, and in none while there are none. An unauthenticated client gets a small
// buffer, and larger ones only from the memory limit.

import "sync"

const (
	mediumSize = 8 << 10 // holds what a read can add to a command that fits redcon's buffer
	smallSize  = 2 << 10 // holds every honest login: names and passwords have some hundred bytes
	// LargeSize holds the longest unauthenticated command and the bytes that exceed it.
	LargeSize = maxCommand + smallSize
)

// Memory is one connection's part of a limit that all unauthenticated clients share.
type Memory interface {
	Grow(size int) bool // makes it at least size bytes; false: it was evicted
	Release()           // gives it back; it may grow again
	End()               // gives it back for good
}

// Pools are the buffers that all connections of a server share. The zero value is ready.
type Pools struct {
	medium, small, large sync.Pool // of pointers to arrays
}

func from[T any](pool *sync.Pool) *T {
	if array, ok := pool.Get().(*T); ok {
		return array
	}
	return new(T)
}

// Buffer holds the commands of one connection that are not handed over yet. The first of
// them starts it.
type Buffer struct {
	Pools  *Pools
	Memory Memory // of an unauthenticated client's buffer beyond a small one

	medium   *[mediumSize]byte // the pooled memory of data, to be returned
	small    *[smallSize]byte  // or this
	large    *[LargeSize]byte  // or this
	data     []byte
	start    int  // data[start:] is not handed over yet
	reserved bool // data is counted in Memory
}

// Bytes are those that are not handed over yet.
func (b *Buffer) Bytes() []byte { return b.data[b.start:] }

// Empty reports whether there are none.
func (b *Buffer) Empty() bool { return b.start == len(b.data) }

// Consume drops the first n bytes.
func (b *Buffer) Consume(n int) { b.start += n }

// Held is the memory in bytes, with bytes that are not used; large is without that of pooled buffers.
func (b *Buffer) Held() (all, large int) {
	if b.medium == nil && b.small == nil && b.large == nil {
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
		b.medium = from[[mediumSize]byte](&b.Pools.medium)
		b.data = b.medium[:0]
	}
	b.compact()
	before := cap(b.data)
	b.data = append(b.data, p...)
	if cap(b.data) != before { // append has reallocated it
		b.returnArrays()
	}
}

// Space returns the space for the next bytes of an unauthenticated client, or false if
// there is none; Filled tells how many were read into it. A command that outgrows its
// buffer moves to a larger one: it is copied twice at most, and the smaller buffer is free
// at once.
func (b *Buffer) Space() (free []byte, ok bool) {
	if b.data == nil {
		b.small = from[[smallSize]byte](&b.Pools.small)
		b.data = b.small[:0]
	}
	b.compact()
	if len(b.data) == cap(b.data) && !b.grow() {
		return nil, false
	}
	return b.data[len(b.data):cap(b.data)], true
}

// Filled adds the n bytes that were read into the space.
func (b *Buffer) Filled(n int) { b.data = b.data[:len(b.data)+n] }

// grow moves an unauthenticated command from a small to a medium and from there to a large buffer.
func (b *Buffer) grow() bool {
	old := b.data
	switch {
	case cap(old) < mediumSize && b.Memory.Grow(mediumSize):
		b.reserved = true
		medium := from[[mediumSize]byte](&b.Pools.medium)
		b.data = append(medium[:0], old...)
		b.returnArrays()
		b.medium = medium
	case cap(old) >= mediumSize && cap(old) < LargeSize && b.Memory.Grow(LargeSize):
		b.reserved = true
		large := from[[LargeSize]byte](&b.Pools.large)
		b.data = append(large[:0], old...)
		b.returnArrays()
		b.large = large
	default:
		return false
	}
	return true
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
	b.returnArrays()
	b.data, b.start = nil, 0
}

// EndReservation frees the reservation of unauthenticated memory.
func (b *Buffer) EndReservation() {
	if b.reserved {
		b.reserved = false
		b.Memory.Release()
	}
}

// returnArrays returns the arrays that data does not use anymore.
func (b *Buffer) returnArrays() {
	if b.medium != nil {
		b.Pools.medium.Put(b.medium)
	}
	if b.small != nil {
		b.Pools.small.Put(b.small)
	}
	if b.large != nil {
		b.Pools.large.Put(b.large)
	}
	b.medium, b.small, b.large = nil, nil, nil
}
