package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Masters are the in-process masters of one daemon.
type Masters struct {
	list []*Master
}

// Master is one in-process master.
type Master struct {
	RunID string

	turn   sync.Mutex // held during each exchange with the master
	mu     sync.Mutex
	server *miniredis.Miniredis
	clock  func() time.Time
	last   time.Time
}

// New makes n masters whose time is read from clock.
func New(n int, clock func() time.Time) *Masters {
	m := &Masters{}
	for range n {
		m.list = append(m.list, NewMaster(clock))
	}
	return m
}

// NewMaster makes one master whose time is read from clock.
func NewMaster(clock func() time.Time) *Master {
	var id [20]byte
	_, _ = rand.Read(id[:])
	m := &Master{RunID: hex.EncodeToString(id[:]), server: miniredis.NewMiniRedis(), clock: clock, last: clock()}
	m.server.SetTime(m.last)
	return m
}

// At returns the i-th master.
func (m *Masters) At(i int) *Master { return m.list[i] }

// Close ends all connections.
func (m *Masters) Close() {
	for _, one := range m.list {
		one.Close()
	}
}

// Dial opens a connection to the master.
func (m *Master) Dial() (net.Conn, error) {
	conn, err := m.server.Dial()
	if err != nil {
		return nil, err
	}
	return newPipe(conn), nil
}

// Server is the miniredis behind the master, for tests.
func (m *Master) Server() *miniredis.Miniredis { return m.server }

// Close ends the master's connections.
func (m *Master) Close() { m.server.Close() }

// Turn runs one exchange with the master, its clock moved to now, and no other exchange
// meanwhile: miniredis reads its clock without a lock, so it must
// not be moved under a command of another connection.
func (m *Master) Turn(exchange func()) {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.Advance()
	exchange()
}

// Advance moves the master's clock to now and removes what has expired. A clock
// that was set back changes only the answer of TIME, as on a real master.
func (m *Master) Advance() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	if passed := now.Sub(m.last); passed > 0 {
		m.server.FastForward(passed)
	}
	m.server.SetTime(now)
	m.last = now
}
