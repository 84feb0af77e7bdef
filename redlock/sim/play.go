package sim

import "io"

// NewWorld prepares a run; it is a function of scenario and seed alone.
func NewWorld(s *Scenario, seed uint64, lab *Lab) *World {
	w := newWorld(s, seed, lab)
	w.observer = newChecker(w)
	return w
}

// Replay plays a world again with a trace, into out as it happens.
func Replay(s *Scenario, seed uint64, out io.Writer) *WorldViolation {
	w := NewWorld(s, seed, NewLab())
	w.trace.on, w.trace.out = true, out
	return w.Play()
}

// Find returns the scenario of a name, nil if there is none.
func Find(name string) *Scenario {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s
		}
	}
	return nil
}
