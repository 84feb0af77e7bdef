// Package sim plays the product against faults that a test on real servers meets
// once in a year, and checks every answer that a client receives.
//
// A World is a group of masters, some daemons, and clients, in one thread and in virtual
// time. The daemons are the product itself, redlock on pool, with their clock, transport,
// tasks and jitter injected. The masters run the product's own Lua scripts on a memory of
// their own. A seed decides every event, so a world can be played again, step by step.
// Faults fall between any two commands of a flush. A checker compares, at every answer,
// what a client received with what every other client received. It never inspects a daemon.
//
// Reading order: scenario.go, scenarios.go, waitscenarios.go, dropinscenarios.go,
// replacing.go, spanning.go, slotscenarios.go, slotmove.go (what is played); checker.go, waitchecker.go,
// holdchecker.go, dropinchecker.go, cycles.go, drain.go, leftovers.go (what is promised); world.go, run.go, task.go, daemon.go, link.go, server.go,
// process.go, clocks.go, tracking.go, baseclient.go (the machinery; package fake has a master's memory,
// commands and scripts); the other files are kinds of clients or of faults.
package sim
