package sim

import "io"

// Replay plays a world again with a trace, into out as it happens.
func Replay(s *Scenario, seed uint64, patch func(string) string, out io.Writer) *WorldViolation {
	w := NewWorld(s, seed, NewLab(patch))
	w.trace.on, w.trace.out = true, out
	return w.Play()
}

// Find is the scenario of a name, nil if there is none.
func Find(name string) *Scenario {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s
		}
	}
	return nil
}
