package chaos

// links_test.go: faults of the bytes between a daemon and a master.

import (
	"time"

	"redlockd/pool/faulty"
)

// slow delays around the master timeout: some answers are in time, others not.
func slow(v *victim) {
	d := time.Millisecond + time.Duration(v.random.Int64N(int64(150*time.Millisecond)))
	switch v.random.IntN(3) {
	case 0:
		v.link().Delay(d)
	case 1:
		v.link().Delay(d, faulty.ToMaster)
	default:
		v.link().Delay(d, faulty.ToClient)
	}
}

func quick(v *victim) { v.link().Delay(v.stand.distance(v.daemon, v.master)) }

func dribble(v *victim) { v.link().ByteByByte(true) }
func flow(v *victim)    { v.link().ByteByByte(false) }

func hold(v *victim)          { v.link().Pause() }
func holdAnswers(v *victim)   { v.link().Pause(faulty.ToClient) }
func holdQuestions(v *victim) { v.link().Pause(faulty.ToMaster) }
func resume(v *victim)        { v.link().Resume() }

// stall lets part of a flush or of its answers pass.
func stall(v *victim) {
	way := faulty.ToMaster
	if v.random.IntN(2) == 0 {
		way = faulty.ToClient
	}
	v.link().StallAfter(v.random.Int64N(400), way)
}

// mute lets one connection of the link, in one direction, deliver nothing more: the sender does
// not learn that it has been cut.
func mute(v *victim) {
	way := faulty.ToMaster
	if v.random.IntN(2) == 0 {
		way = faulty.ToClient
	}
	v.link().Mute(way, v.random.IntN)
}

func cut(v *victim) { v.link().Cut() }

func refuse(v *victim) {
	v.link().Refuse()
	v.link().Cut()
}

func halfOpen(v *victim) {
	v.link().HalfOpen()
	v.link().Cut()
}

func hangUp(v *victim) {
	v.link().HangUp()
	v.link().Cut()
}

func accept(v *victim) { v.link().Accept() }

// holdAll and resumeAll share links with the faults of a single one; either may
// end the other's work early, which does no harm.
func holdAll(v *victim) {
	for _, link := range v.struck().links {
		link.Pause()
	}
}

func resumeAll(v *victim) {
	for _, link := range v.struck().links {
		link.Resume()
	}
}
