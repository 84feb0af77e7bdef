// Which masters' answers did not count in one ballot, and why.
//
// The text of NoQuorum is made of the ballot's own votes: when it is written, a
// master that was away may be there again, and another one may have left.
package redlock

import (
	"math/bits"

	"redlockd/pool"
)

// missing is kept by every ballot, under its lock, until it is decided. The reasons
// are made when the first answer does not count: with room for them in every ballot an
// acquire took 1280 bytes instead of 1024, a release 480 instead of 192.
type missing struct {
	counted uint16 // lanes whose answer counts, as bits
	why     *[maxMasters]pool.Absence
}

// counts notes an answer that counts.
func (m *missing) counts(lane int) { m.counted |= 1 << lane }

// lacks notes why an answer does not count.
func (m *missing) lacks(lane int, why pool.Absence) {
	if m.why == nil {
		m.why = new([maxMasters]pool.Absence)
	}
	m.why[lane] = why
}

// reason is why a lane's answer does not count, as far as is known.
func (m *missing) reason(lane int) pool.Absence {
	if m.why == nil {
		return pool.Absence{}
	}
	return m.why[lane]
}

func (m *missing) answered() int { return bits.OnesCount16(m.counted) }

// phrases name each master whose answer did not count.
func (m *missing) phrases(p *pool.Pool) []string { return m.of(p, ^m.counted) }

// of are the phrases of some lanes, which are bits.
func (m *missing) of(p *pool.Pool, lanes uint16) (list []string) {
	for lane := range p.N() {
		if lanes&(1<<lane) != 0 {
			list = append(list, p.Absent(lane, m.reason(lane)))
		}
	}
	return list
}

// names are those of the lanes, which are bits.
func names(p *pool.Pool, lanes uint16) (list []string) {
	for lane := range p.N() {
		if lanes&(1<<lane) != 0 {
			list = append(list, p.NameOf(lane))
		}
	}
	return list
}

// noQuorum names the masters whose answers a ballot missed, and why.
func (l *Locker) noQuorum(m *missing, note string) *NoQuorum {
	l.counts.noQuorum.Add(1)
	return &NoQuorum{Answered: m.answered(), Needed: l.pool.Quorum(), Total: l.pool.N(), Missing: m.phrases(l.pool), Note: note}
}
