package chaos

// faults_test.go: the table of faults. A new fault is a row here and, if it is more
// than one call, a file for its noun. What each of them may strike at the same
// time as others, and why that respects what the product assumes, is documented at
// its scope (claims_test.go).

import (
	"slices"
	"time"
)

const (
	longestPause = 3 * maxTTL // of a process or a network: beyond every lease
	longestSlow  = 2 * time.Second
)

// networkFaults are of the way between a daemon and a master.
func networkFaults() []fault {
	return []fault{
		{"a slow link", 6, onLink, span{20 * time.Millisecond, longestSlow}, slow, quick},
		{"a link of single bytes", 2, onLink, span{20 * time.Millisecond, longestSlow}, dribble, flow},
		{"a link that holds everything", 5, onLink, span{time.Millisecond, longestPause}, hold, resume},
		{"a link that holds the answers", 5, onLink, span{time.Millisecond, longestPause}, holdAnswers, resume},
		{"a link that holds the questions", 3, onLink, span{time.Millisecond, longestPause}, holdQuestions, resume},
		{"a link that stalls within a flush", 5, onLink, span{time.Millisecond, longestPause}, stall, resume},
		{"a cut link", 5, onLink, span{}, cut, nil},
		{"a link that is refused", 3, onLink, span{time.Millisecond, longestPause}, refuse, accept},
		{"a link that is half open", 2, onLink, span{time.Millisecond, longestPause}, halfOpen, accept},
		{"a link that hangs up", 2, onLink, span{time.Millisecond, longestPause}, hangUp, accept},
		{"a daemon cut off", 2, onDaemon, span{time.Millisecond, longestPause}, holdAll, resumeAll},
	}
}

// oneWayFaults leave most connections alone.
func oneWayFaults() []fault {
	return []fault{
		{"a connection that is cut in one direction", 20, onLink, span{time.Millisecond, 200 * time.Millisecond}, mute, nil},
		{"a link that holds the answers", 2, onLink, span{time.Millisecond, longestPause}, holdAnswers, resume},
		{"a link that holds the questions", 2, onLink, span{time.Millisecond, longestPause}, holdQuestions, resume},
	}
}

// startFaults end processes, and start them in another order.
func startFaults() []fault {
	return slices.Concat(daemonFaults(), crashFaults(), []fault{
		{"all processes ended, and started in another order", 3, onAll, span{time.Millisecond, 500 * time.Millisecond}, endAll, startAll},
	})
}

// daemonFaults are of a redlockd process. A client that is served meanwhile uses
// another one.
func daemonFaults() []fault {
	return []fault{
		{"a stopped daemon", 6, onDaemon, span{time.Millisecond, longestPause}, stopDaemon, continueDaemon},
		{"a killed daemon", 2, onDaemon, span{time.Millisecond, 500 * time.Millisecond}, killDaemon, startDaemonAgain},
		{"a daemon that drains and comes back", 2, onDaemon, span{}, endDaemon, startDaemonAgain},
	}
}

// masterFaults leave the masters their memory.
func masterFaults() []fault {
	return []fault{
		{"a stopped master", 8, onMaster, span{time.Millisecond, longestPause}, stopMaster, continueMaster},
		{"a busy master", 3, onMaster, span{}, busy, nil},
		{"a master that answers BUSY", 2, onMaster, span{}, busyAloud, resetTimeLimit},
		{"clients killed", 4, onMaster, span{}, killClients, nil},
		{"writes paused", 2, onMaster, span{10 * time.Millisecond, time.Second}, pauseWrites, unpauseWrites},
		{"scripts flushed", 3, onMaster, span{}, flushScripts, nil},
		{"a master out of memory", 2, onMaster, span{50 * time.Millisecond, time.Second}, fillMemory, freeMemory},
	}
}

// crashFaults kill masters that remember everything (appendfsync always). A file that lost its end is not among them: then
// the disk lied about what it had, and one of several daemons may be deceived.
func crashFaults() []fault {
	return []fault{
		{"a master killed and started with its file", 6, onMaster, span{time.Millisecond, longestPause}, killMaster, startMaster},
		{"a master restarted with its file at once", 3, onMaster, span{}, startMaster, nil},
	}
}

// copyFaults have a master with a file store what it copied from another one.
func copyFaults() []fault {
	return []fault{
		{"a replica restarted with its file", 2, onMemory, span{500 * time.Millisecond, 2 * maxTTL}, replicateAndRestart, startEmpty},
	}
}

// memoryFaults take memory.
func memoryFaults() []fault {
	return []fault{
		{"FLUSHALL", 4, onMemory, span{}, flushAll, nil},
		{"a master killed and started empty", 3, onMemory, span{time.Millisecond, longestPause}, killMaster, startEmpty},
		{"a master restarted empty at once", 3, onMemory, span{}, startEmpty, nil},
		{"SWAPDB and back", 3, onMemory, span{time.Millisecond, maxTTL}, swap, swap},
		{"SWAPDB and back when it votes again", 3, onMemory, span{age + time.Second, age + 2*time.Second}, swapBlank, swap},
		{"a policy that may evict", 1, onIncarnation, span{50 * time.Millisecond, time.Second}, allowEviction, forbidEviction},
		{"a master that was a replica", 2, onMemory, span{time.Millisecond, time.Second}, replicate, startEmpty},
	}
}

// clockFaults step clocks.
func clockFaults() []fault {
	return []fault{
		{"a clock that steps", 6, onIncarnation, span{50 * time.Millisecond, longestPause}, stepClock, stepBack},
		{"a clock that steps for a moment", 4, onIncarnation, span{}, stepClock, stepBack},
		{"a clock that steps a little", 4, onIncarnation, span{time.Millisecond, longestPause}, creepClock, creepBack},
	}
}

// allFaults is what can happen on a stand of this kind.
func allFaults(p plan) []fault {
	faults := slices.Concat(networkFaults(), daemonFaults(), masterFaults(), memoryFaults())
	if p.durable {
		faults = slices.Concat(faults, crashFaults(), copyFaults())
	}
	if p.clocks {
		faults = append(faults, clockFaults()...)
	}
	return faults
}
