// What may an operator have changed behind our back? Once a second the masters
// are asked for the settings that the admission relied on. One that has changed
// ends the connection: the next admission refuses, or clears the durable bit.
package pool

import "errors"

// factsEvery is how many heartbeats lie between two looks: CONFIG GET with a
// pattern costs a master some ten microseconds.
const factsEvery = 10

var errSettings = errors.New("its settings changed, it must be admitted again")

// askFacts appends the questions.
func (f *flush) askFacts() {
	f.factsAt = len(f.commands)
	f.next().Set("CONFIG", "GET", "*append*")
	f.next().Set("INFO", "persistence")
	f.next().Set("CONFIG", "GET", "maxmemory-policy")
	f.listenersAt = -1
	if g := f.conn.lane.group; g.asksForListeners() {
		f.listenersAt = len(f.commands)
		f.next().Set("PUBSUB", "NUMSUB", g.eventChannel())
	}
}

// changed tells whether the answers contradict what the connection was
// admitted with. Where CONFIG is forbidden there is nothing to compare.
func (f *flush) changed() error {
	if f.factsAt < 0 {
		return nil
	}
	if l := f.conn.lane; f.listenersAt >= 0 {
		l.group.countListeners(l.index, f.replies[f.listenersAt], f.sent)
	}
	settings, info, policy := f.replies[f.factsAt], f.replies[f.factsAt+1], f.replies[f.factsAt+2]
	if policy.Err == nil && len(policy.Items) == 2 && policy.Items[1].Str != "noeviction" {
		return errSettings
	}
	if f.conn.life.Durable && settings.Err == nil && info.Err == nil && volatile(settings, info.Str) != "" {
		return errSettings
	}
	return nil
}
