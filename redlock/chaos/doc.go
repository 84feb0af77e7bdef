// Package chaos runs the product as it is run in production, redlockd and
// redis-server as processes of their own, lets everything happen to them that
// may happen, and judges what their clients were told. It is tests alone.
//
// The nouns: a stand is the masters, the daemons and a relay between each of
// them; a fault is a row of a table, how it begins and how it ends; the nemesis
// draws faults by their weights; a workload is what some clients want, and what
// they must be told; a mix says which of all that come together in one run. The
// clients of waits, holds and modes have a desk, with a history and the visits to
// their keys: who stood in line, who was served, how long a key lay idle.
//
// One run: load and faults for a while, everything healed, every master votes
// again, load without faults, the clients are all served, nothing of theirs is left
// on the masters, nobody waits and nothing is renewed in the daemons,
// the daemons are as small as a new one, and the judges agree. A run is repeated
// from its seed as far as processes and networks let themselves be repeated.
//
// What is promised without condition has no excuse. What is promised while a daemon
// runs and reaches a quorum is excused where the log of faults shows that it did not
// (excuses_test.go), or the kernel that it had no processor (machine_test.go).
//
// A run that fails says so three times: in place, in its artefacts, and, with what
// repeats it, at the end of all output.
//
// CHAOS_SECONDS or CHAOS_MINUTES is the time of load of all runs together,
// CHAOS_MIX names one mix, or says all, or how many, CHAOS_SEED repeats the draws,
// CHAOS_PUBLISH=1 puts the figures into RESULTS.md if nothing failed,
// CHAOS_SOAK_MINUTES is the time of the soak, which is not run without it,
// RIG_MUTANTS names mutants that are hunted (mutants_test.go), or says all, RIG_SECONDS
// lets some of them live for a shorter time, RIG_PUBLISH=1 puts their rows into
// redlock/mutants/RESULTS.md, as all does with all rows,
// CHAOS_RACE=1 builds the daemon with the race detector, CHAOS_BINARY names a
// daemon that is there already.
package chaos
