package chaos

// memories_test.go: faults that make a running master forget.

import "net"

func flushAll(v *victim) { sendTo(v, "FLUSHALL") }

// swap puts the locks aside, and a second one brings them back: older than what
// was promised meanwhile, in the same process.
func swap(v *victim) { sendTo(v, "SWAPDB", 0, 1) }

// swapBlank is swap on a master whose other database was never admitted, so
// that a new life begins in it.
func swapBlank(v *victim) {
	flushAll(v)
	eventually(func() bool { return v.stand.aged(v.master) })
	swap(v)
}

// replicate makes the master a replica of another, which replaces its memory by
// a copy of the other's, and then a master again. Daemons refuse one that was a
// replica and request an empty restart, which is how it ends.
func replicate(v *victim) {
	follow(v)
	if v.random.IntN(2) == 0 { // at once, or after the copy has arrived
		eventually(func() bool { return replicated(v) })
	}
	sendTo(v, "REPLICAOF", "NO", "ONE")
}

// replicateAndRestart waits until a copy of another master's memory is in the
// file, and makes the master forget that it was a replica.
func replicateAndRestart(v *victim) {
	follow(v)
	eventually(func() bool { return replicated(v) && !rewriting(v) })
	sendTo(v, "REPLICAOF", "NO", "ONE")
	v.server().Restart()
}

// follow makes it a replica of its predecessor in the group.
func follow(v *victim) {
	n := v.stand.groupSize()
	first := v.master - v.master%n
	other := v.stand.masters[first+(v.master+n-1)%n]
	host, port, _ := net.SplitHostPort(other.Addr()) // of a listener
	_, _ = other.Do("CONFIG", "SET", "repl-diskless-sync-delay", 0)
	sendTo(v, "REPLICAOF", host, port)
}

// replicated reports whether the copy has arrived, or the master is not there.
func replicated(v *victim) bool {
	role, err := v.server().Do("ROLE")
	words, ok := role.([]any)
	return err != nil || !ok || words[0] != "slave" || words[3] == "connected"
}

// rewriting reports whether the copy is on its way into the file.
func rewriting(v *victim) bool {
	info, _ := v.server().Do("INFO", "persistence")
	text, _ := info.(string)
	return field(text, "aof_rewrite_in_progress") == "1" || field(text, "aof_rewrite_scheduled") == "1"
}
