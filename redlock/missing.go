// This file records which masters' answers did not count in one ballot, and why.
//
// The text of NoQuorum is made from the ballot's own votes. By the time the text is
// written, a master that was away may be back, and another may have left.

package redlock

import (
	"math/bits"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// missing is kept by every ballot, under the ballot's lock, until the ballot is decided.
// The array of reasons is allocated when the first answer does not count. With room for
// them in every ballot an acquire took 1280 bytes instead of 1024, and a release 480
// instead of 192.
type missing struct {
	counted uint16 // bits: the lanes whose answer counts
	reasons *[quorum.MaxMasters]pool.Absence
}

// markCounted records that a lane's answer counts.
func (m *missing) markCounted(lane int) { m.counted |= 1 << lane }

// markMissing records why a lane's answer does not count.
func (m *missing) markMissing(lane int, why pool.Absence) {
	if m.reasons == nil {
		m.reasons = new([quorum.MaxMasters]pool.Absence)
	}
	m.reasons[lane] = why
}

// reason is why a lane's answer does not count, as far as it is known.
func (m *missing) reason(lane int) pool.Absence {
	if m.reasons == nil {
		return pool.Absence{}
	}
	return m.reasons[lane]
}

func (m *missing) answered() int { return bits.OnesCount16(m.counted) }

// phrases describe each master whose answer did not count.
func (m *missing) phrases(p *pool.Pool) []string { return m.phrasesOf(p, ^m.counted) }

// phrasesOf are the phrases of some lanes, given as bits.
func (m *missing) phrasesOf(p *pool.Pool, lanes uint16) (list []string) {
	for lane := range p.N() {
		if lanes&(1<<lane) != 0 {
			list = append(list, p.Absent(lane, m.reason(lane)))
		}
	}
	return list
}

// masterNames are the names of some lanes' masters; the lanes are given as bits.
func masterNames(p *pool.Pool, lanes uint16) (list []string) {
	for lane := range p.N() {
		if lanes&(1<<lane) != 0 {
			list = append(list, p.NameOf(lane))
		}
	}
	return list
}

// noQuorum builds the error that names each master whose answer a ballot missed, and why.
func (l *Locker) noQuorum(m *missing, note string) *NoQuorum {
	l.counts.noQuorum.Add(1)
	return &NoQuorum{Answered: m.answered(), Needed: l.pool.Quorum(), Total: l.pool.N(), Missing: m.phrases(l.pool), Note: note}
}
