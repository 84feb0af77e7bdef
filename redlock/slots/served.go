package slots

import "time"

// Served is a range of slots, and the group of masters that serves it.
type Served struct {
	Range
	Group      string
	Version    int64 // of the map in the group's configuration, see package admission
	Frozen     bool  // it leaves the group: nothing is granted
	To         string
	Rest       time.Duration // of the freeze; 0 = it is over, and the move is not finished
	Operations int64         // requests for its keys since the start of the daemon
}
