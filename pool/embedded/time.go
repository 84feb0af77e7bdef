package embedded

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// A master has a time of its own, in ms since 1970. It is the clock's as long as the
// clock is never set back, and it never goes back itself.

// moment is a state of that time, and of what else the hook must know.
type moment struct {
	now     time.Time     // the clock at the last exchange, which TIME answers
	lag     time.Duration // by how much the clock was set back: the master's own time is ahead of it
	failure string        // see SetError
}

// own is the master's own time.
func (m *moment) own() int64 { return m.now.Add(m.lag).UnixMilli() }

func (m *Master) at() *moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.moment
	return &now
}

// ownTime is the moment that a number stands for, in the master's own time; unit is the
// option of SET. It reports whether the number is one.
func (m *Master) ownTime(unit, number string) (int64, bool) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, false
	}
	end := min(max(int64(n), math.MinInt64/2000), math.MaxInt64/2000) // so that nothing overflows
	if unit == "EX" || unit == "EXAT" {
		end *= 1000
	}
	if unit == "EX" || unit == "PX" {
		return m.at().own() + end, true
	}
	return end + m.at().lag.Milliseconds(), true
}

// noteDatabase records that a client uses this database.
func (m *Master) noteDatabase(number string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scanned = nil // may be of the client's former database
	if n, err := strconv.Atoi(number); err == nil && n > 0 && !slices.Contains(m.databases, n) {
		m.databases = append(slices.Clone(m.databases), n)
	}
}

// Time moves the master's clock to now and returns it. For tests.
func (m *Master) Time() (now time.Time) {
	m.Turn(func() { now = m.at().now })
	return now
}

// SetError makes the master answer every command with this error; "" ends that. For tests.
func (m *Master) SetError(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moment.failure = text
}

// TTL returns the time that a key of database 0 still lasts; 0 = no such key, or no expiry. For tests.
func (m *Master) TTL(key string) (left time.Duration) {
	m.Turn(func() {
		if end := m.server.TTL(key); end > 0 {
			left = end - time.Duration(m.at().own())*time.Millisecond
		}
	})
	return left
}

// SetTTL makes a key of database 0 last this long from now on. For tests.
func (m *Master) SetTTL(key string, left time.Duration) {
	m.Turn(func() {
		end := m.at().own() + left.Milliseconds()
		m.expiries.note(key, end)
		m.server.SetTTL(key, time.Duration(end)*time.Millisecond)
	})
}

// FastForward makes the end of every key come earlier by this much, with the clock as it is. For tests.
func (m *Master) FastForward(by time.Duration) {
	m.mu.Lock()
	m.moment.lag += by.Truncate(time.Millisecond)
	m.mu.Unlock()
	m.Turn(func() {})
}
