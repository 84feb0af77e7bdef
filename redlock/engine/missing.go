// This file records which masters' answers did not count in one ballot, and why.
//
// The text of NoQuorum is made from the ballot's own votes. By the time the text is
// written, a master that was away may be back, and another may have left.

package engine

import (
	"math/bits"

	"redlockd/pool"
	"redlockd/redlock/quorum"
)

// Missing is kept by every ballot, under the ballot's lock, until the ballot is decided.
// The array of reasons is allocated when the first answer does not count. With room for
// them in every ballot an acquire took 1280 bytes instead of 1024, and a release 480
// instead of 192.
type Missing struct {
	counted uint16 // bits: the lanes whose answer counts
	reasons *[quorum.MaxMasters]pool.Absence
}

// MarkCounted records that a lane's answer counts.
func (m *Missing) MarkCounted(lane int) { m.counted |= 1 << lane }

// MarkMissing records why a lane's answer does not count.
func (m *Missing) MarkMissing(lane int, why pool.Absence) {
	if m.reasons == nil {
		m.reasons = new([quorum.MaxMasters]pool.Absence)
	}
	m.reasons[lane] = why
}

// Reason is why a lane's answer does not count, as far as it is known.
func (m *Missing) Reason(lane int) pool.Absence {
	if m.reasons == nil {
		return pool.Absence{}
	}
	return m.reasons[lane]
}

func (m *Missing) Answered() int { return bits.OnesCount16(m.counted) }

// PhrasesOf are the phrases of some lanes, given as bits.
func (m *Missing) PhrasesOf(p *pool.Pool, lanes uint16) (list []string) {
	for lane := range p.N() {
		if lanes&(1<<lane) != 0 {
			list = append(list, p.Absent(lane, m.Reason(lane)))
		}
	}
	return list
}

// MasterNames are the names of some lanes' masters; the lanes are given as bits.
func MasterNames(p *pool.Pool, lanes uint16) (list []string) {
	for lane := range p.N() {
		if lanes&(1<<lane) != 0 {
			list = append(list, p.NameOf(lane))
		}
	}
	return list
}

// NoQuorum builds the error that names each master whose answer a ballot missed, and why.
func (e *Engine) NoQuorum(m *Missing, note string) *NoQuorum {
	e.Counts.NoQuorum.Add(1)
	return &NoQuorum{Answered: m.Answered(), Needed: e.Pool.Quorum(), Total: e.Pool.N(), Missing: m.PhrasesOf(e.Pool, ^m.counted), Note: note}
}
