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
type Masters []*Master

type Master struct {
	RunID string

	server *miniredis.Miniredis
	clock  func() time.Time
	turn   sync.Mutex // held during each exchange with the master
	dial   sync.Mutex // keeps Dial and Close apart

	expiries expiries

	mu        sync.Mutex // never held during a call of miniredis, whose hook locks it
	moment    moment
	databases []int
	scanned   *scanList // the latest
}

// New makes n masters whose time is read from clock.
func New(n int, clock func() time.Time) (m Masters) {
	for range n {
		m = append(m, NewMaster(clock))
	}
	return m
}

// NewMaster makes one master whose time is read from clock.
func NewMaster(clock func() time.Time) *Master {
	var id [20]byte
	_, _ = rand.Read(id[:])
	m := &Master{
		RunID: hex.EncodeToString(id[:]), server: miniredis.NewMiniRedis(), clock: clock, moment: moment{now: clock().Round(0)},
		databases: []int{0}, expiries: expiries{byKey: map[string]*expiry{}},
	}
	m.server.SetTime(stillTime)
	return m
}

func (m Masters) At(i int) *Master { return m[i] }

// Close ends all connections.
func (m Masters) Close() {
	for _, one := range m {
		one.Close()
	}
}

// Dial opens a connection to the master.
func (m *Master) Dial() (net.Conn, error) {
	m.dial.Lock()
	defer m.dial.Unlock()
	conn, err := m.server.Dial()
	if err != nil {
		return nil, err
	}
	s := m.server.Server() // Dial may have started it
	s.SetPreHook(translator{m, s}.translate)
	return newPipe(conn), nil
}

// Server is the miniredis behind the master, for tests. Its methods for expiries, its
// clock and its hook must not be used: the master has its own.
func (m *Master) Server() *miniredis.Miniredis { return m.server }

// Close ends the master's connections.
func (m *Master) Close() {
	m.dial.Lock()
	defer m.dial.Unlock()
	m.server.Close()
}

// Turn runs one exchange with the master, its clock moved to now, and no other exchange
// meanwhile: all commands of an exchange see the same time.
func (m *Master) Turn(exchange func()) {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.Advance()
	exchange()
}

// Advance moves the master's clock to now and removes what has expired. A clock
// that was set back changes only the answer of TIME, as on a real master. The time that
// it takes does not depend on the number of keys, only on how many have expired.
func (m *Master) Advance() {
	m.mu.Lock()
	at := &m.moment
	now := m.clock().Round(0)
	if back := at.now.Sub(now); back > 0 {
		at.lag += (back + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	at.now = now
	own, databases := at.own(), m.databases
	m.mu.Unlock()
	for _, key := range m.expiries.due(own) {
		m.check(key, databases)
	}
}

// check removes a key from the databases in which it has expired.
func (m *Master) check(key string, databases []int) {
	now := m.at().own()
	for _, n := range databases {
		db := m.server.DB(n)
		switch end := db.TTL(key).Milliseconds(); {
		case end > now:
			m.expiries.note(key, end)
		case end > 0:
			db.Del(key)
		}
	}
}
