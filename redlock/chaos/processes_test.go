package chaos

// processes_test.go: faults of daemons and masters as processes.

import (
	"syscall"

	"redlockd/pool/faulty"
)

func stopDaemon(v *victim)     { v.struck().Stop() }
func continueDaemon(v *victim) { v.struck().Cont() }
func killDaemon(v *victim)     { v.struck().Kill() }

// endDaemon ends a daemon without --drain-grace, in which a client here, which has no balancer in front,
// would send it one wait after another in vain.
func endDaemon(v *victim)        { v.struck().End(syscall.SIGINT) }
func startDaemonAgain(v *victim) { v.struck().Restart() }

// endAll and startAll end every daemon and every master, and start them again, each time in an
// order of its own.
func endAll(v *victim) { v.inAnyOrder((*daemon).Kill, (*faulty.Server).Kill) }

func startAll(v *victim) { v.inAnyOrder((*daemon).Restart, (*faulty.Server).Restart) }

func (v *victim) inAnyOrder(daemons func(*daemon), masters func(*faulty.Server)) {
	s := v.stand
	for _, i := range v.random.Perm(len(s.daemons) + len(s.masters)) {
		if i < len(s.daemons) {
			daemons(s.daemons[i])
		} else {
			masters(s.masters[i-len(s.daemons)])
		}
	}
}

func stopMaster(v *victim)     { v.server().Stop() }
func continueMaster(v *victim) { v.server().Cont() }
func killMaster(v *victim)     { v.server().Kill() }
func startMaster(v *victim)    { v.server().Restart() }
func startEmpty(v *victim)     { v.server().RestartEmpty() }

// sendTo sends a command to the master that is struck. Killed clients include the
// sender, and a master out of memory refuses: no answer is needed.
func sendTo(v *victim, words ...any) { _, _ = v.server().Do(words...) }

const busyScript = `local t = redis.call('TIME') local ends = t[1] * 1000 + t[2] / 1000 + ARGV[1]
repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > ends return 1`

// busy blocks the master as DEBUG SLEEP and a slow command do.
func busy(v *victim) { sendTo(v, "EVAL", busyScript, 0, 20+v.random.IntN(600)) }

// busyAloud has it answer BUSY to all clients meanwhile.
func busyAloud(v *victim) {
	sendTo(v, "CONFIG", "SET", "lua-time-limit", 20)
	sendTo(v, "EVAL", busyScript, 0, 50+v.random.IntN(600))
}

func resetTimeLimit(v *victim) { sendTo(v, "CONFIG", "SET", "lua-time-limit", 5000) }

func killClients(v *victim)  { sendTo(v, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }
func flushScripts(v *victim) { sendTo(v, "SCRIPT", "FLUSH") }

// pauseWrites lasts until it is undone: by itself it would end by the master's
// wall clock, which another fault may step.
func pauseWrites(v *victim)   { sendTo(v, "CLIENT", "PAUSE", waitTimeout.Milliseconds(), "WRITE") }
func unpauseWrites(v *victim) { sendTo(v, "CLIENT", "UNPAUSE") }

// fillMemory makes writes fail; nothing is evicted.
func fillMemory(v *victim) { sendTo(v, "CONFIG", "SET", "maxmemory", 1) }
func freeMemory(v *victim) { sendTo(v, "CONFIG", "SET", "maxmemory", 0) }

// allowEviction changes what the daemons demand at admission. Without a maxmemory
// nothing is evicted; a daemon that sees the policy takes the memory for lost, and
// the next incarnation has no counters at first.
func allowEviction(v *victim)  { sendTo(v, "CONFIG", "SET", "maxmemory-policy", "allkeys-random") }
func forbidEviction(v *victim) { sendTo(v, "CONFIG", "SET", "maxmemory-policy", "noeviction") }
