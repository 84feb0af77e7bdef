package redlock

// missing_test.go: NOQUORUM names exactly the masters whose votes a ballot missed,
// each with the reason that it had in that ballot.

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
	"redlockd/redlock/redlocktest"
)

// missed wants NoQuorum with these masters, by their first letters, each with words of
// its own.
func missed(t *testing.T, what string, err error, want map[string]string) {
	t.Helper()
	unknown := noQuorum(t, err)
	found := map[string]string{}
	for _, phrase := range unknown.Missing {
		letter, reason, _ := strings.Cut(phrase, "=")
		found[letter] = reason
	}
	for letter, words := range want {
		if !strings.Contains(found[letter], words) {
			t.Errorf("%s: master %s is missing because of %q, want %q", what, letter, found[letter], words)
		}
		delete(found, letter)
	}
	for letter, reason := range found {
		t.Errorf("%s: master %s is named (%s), though its vote counted", what, letter, reason)
	}
}

// unhurried: no answer is late because this machine is busy.
func unhurried(_ *daemon, o *pool.Options) { o.MasterTimeout = 5 * time.Second }

// only are the reasons of some masters.
func only(all map[string]string, letters string) map[string]string {
	some := map[string]string{}
	for _, letter := range strings.Split(letters, "") {
		some[letter] = all[letter]
	}
	return some
}

// errorOf is for calls that answer by a function.
func errorOf(t *testing.T, call func(done func(error))) error {
	t.Helper()
	answer := make(chan error, 1)
	call(func(err error) { answer <- err })
	return receive(t, answer)
}

// Of five masters b is down, c is full, d has lost its memory and e is being drained.
func TestNoQuorum_NamesTheMastersThatEachBallotMissed(t *testing.T) {
	c := newCluster(t, 5, long, durable...)
	one := c.daemon(unhurried)
	held := one.take("held", long)
	work := one.find(WorkRequest{Key: "work", Timeout: long, Max: 3, Keep: long}, WorkAcquired, 1)
	ended := one.find(WorkRequest{Key: "ended", Timeout: long, Max: 3, Keep: long}, WorkAcquired, 1)
	one.draw("n", 1)
	one.idle()
	one.drain(4)
	c.servers[1].Kill()
	c.do(2, "CONFIG", "SET", "maxmemory", 1)
	c.servers[3].RestartEmpty()
	one.await(1, "down")
	_, _ = one.lock("anything", long) // a heartbeat writes nothing
	one.await(2, "failing")
	one.awaitProcess(3, c.servers[3])
	why := map[string]string{
		"b": " down (", "c": " failing (cannot raise its register: OOM", "d": " quarantined (its memory is new, votes in ",
		"e": " draining (it is being drained)",
	}
	lock := func(r LockRequest) error { _, err := one.ask(r); return err }
	for what, err := range map[string]error{
		"DLOCK":        lock(LockRequest{Key: "k", TTL: long}),
		"DLOCK TOKEN":  lock(LockRequest{Key: "k", TTL: long, Token: tokenA}),
		"DLOCK SHARED": lock(LockRequest{Key: "k", TTL: long, Mode: Readers}),
		"DLOCK LIMIT":  lock(LockRequest{Key: "k", TTL: long, Mode: PermitsOf(3)}),
		"DMLOCK":       lock(LockRequest{Key: "k", More: []Key{"l"}, TTL: long}),
		"SET NX":       lock(LockRequest{Key: "k", TTL: long, Token: "value", Mode: Valued}),
		"a retake":     lock(LockRequest{Key: "k", TTL: long, Token: tokenA, Mode: &Swap{Retakes: &Retake{Held: tokenA}}}),
		"FAIR": errorOf(t, func(done func(error)) {
			one.Wait(nil, LockRequest{Key: "k", TTL: long, Fair: true, Wait: 300 * time.Millisecond}, func(_ Grant, err error) { done(err) })
		}),
		"DNEXTID": failureOf(one.ids("n", 1)),
	} {
		missed(t, what, err, why)
	}
	for what, err := range map[string]error{
		"DEXTEND":     failureOf(one.extend("held", "somebody else's", long)),
		"DMEXTEND":    failureOf(one.prolongAll("somebody else's", long, "held", "other")),
		"DUNLOCK":     failureOf(one.unlock("held", "somebody else's")),
		"GET":         failureOf(one.look("held")),
		"EXPIRE":      failureOf(one.write(WriteRequest{Key: "other", Effect: WriteExpires, TTL: long})),
		"another end": failureOf(one.sets(ExtendRequest{Key: "held", Token: "somebody else's", TTL: long})),
		"DLOCKS":      failureOf(one.list(Listing{Count: 1000})),
		"DFORCE":      failureOf(one.force("other")),
	} {
		missed(t, what, err, only(why, "bcd"))
	}
	for what, err := range map[string]error{"DWORK": failureOf(one.tryWork(WorkRequest{Key: "new", Timeout: long, Max: 3, Keep: long}))} {
		why := only(why, "bce")
		why["d"] = " may have forgotten ends of work: votes on new work in "
		missed(t, what, err, why)
	}
	forgot := only(why, "bc")
	forgot["d"] = " may have forgotten what became of the work: it is believed in "
	missed(t, "DWORKINFO", failureOf(one.view("work")), forgot)
	missed(t, "DWORKEXTEND", failureOf(one.prolong(work, long)), forgot)
	for range 2 { // d has written it down by the second time
		err := receive(t, one.requestEnd(one.WorkDone, ended)).err
		missed(t, "DWORKDONE", err, only(why, "bc"))
		if !strings.Contains(err.Error(), "1 of those that answered may have forgotten since the attempt began that it was taken over: d=") ||
			!strings.Contains(err.Error(), " has a memory of only ") {
			t.Errorf("DWORKDONE: %v", err)
		}
	}
	// What a quorum of the five still answers needs one more that is gone.
	c.servers[2].Kill()
	c.servers[3].Kill()
	one.await(2, "down")
	one.await(3, "down")
	gone := map[string]string{"b": " down (", "c": " down (", "d": " down ("}
	for what, err := range map[string]error{
		"DINFO":     failureOf(one.tryToSee("held")),
		"DIDS name": errorOf(t, func(done func(error)) { one.ReadCounter(0, "n", func(_ Counter, err error) { done(err) }) }),
		"DIDS":      errorOf(t, func(done func(error)) { one.ListCounters(0, func(_ []Key, err error) { done(err) }) }),
		"DIDRESEED": one.reseed("n", 100),
		"forwarded": failureOf(one.forward(ForwardRequest{Words: []string{"DBSIZE"}})),
		"DEXTEND":   failureOf(one.extend("held", held.Token, long)),
	} {
		missed(t, what, err, gone)
	}
}

// failureOf is the error of a call that answers two things.
func failureOf[T any](_ T, err error) error { return err }

// The state of a master when the text is written is not what it was in the ballot: b is
// back before the ballot has ended, and a, whose vote counted, is gone.
func TestNoQuorum_IsMadeOfTheBallotsVotesAndNotOfTheStatesAfterwards(t *testing.T) {
	c := newCluster(t, 5, long)
	one := c.daemon(relayed, func(_ *daemon, o *pool.Options) { o.MasterTimeout = 2 * time.Second })
	one.idle()
	for _, i := range []int{1, 2, 3} {
		one.relays[i].Pause()
	}
	answer := make(chan unlockAnswer, 1) // 1: its one answer
	one.Unlock(nil, UnlockRequest{Key: "k", Token: "somebody else's"}, func(was bool, err error) { answer <- unlockAnswer{was, err} })
	one.idleOn(0)
	one.idleOn(4)
	one.relays[1].Cut()
	one.relays[1].Resume()
	one.await(1, "voting")
	one.relays[0].Refuse()
	one.relays[0].Cut()
	one.await(0, "down")
	select {
	case a := <-answer:
		t.Skipf("this machine was too slow: the ballot had ended before the masters changed: %v", a.err)
	default:
	}
	err := receive(t, answer).err
	missed(t, "DUNLOCK", err, map[string]string{"b": "before it answered", "c": "down (did not answer in time: it or the network stood still)", "d": "down (did not answer in time: it or the network stood still)"})
	if unknown := noQuorum(t, err, "2 of 5 masters answered, 3 needed"); unknown.Answered != 2 {
		t.Errorf("%v", err)
	}
}

// idleOn waits until a master has answered what it was asked.
func (d *daemon) idleOn(i int) {
	d.t.Helper()
	redlocktest.IdleOn(d.t, d.engine, i)
}

// What a blind daemon is told by the ballot's own seals, and by nothing before.
func TestNoQuorum_NamesWhatTheSealsOfTheBallotShow(t *testing.T) {
	for words, fault := range map[string]func(c *cluster, i int){
		"forgot (its seal is another":             func(c *cluster, i int) { c.do(i, "FLUSHALL") },
		"failing (cannot raise its register: OOM": func(c *cluster, i int) { c.do(i, "CONFIG", "SET", "maxmemory", 1) },
		"suspect (its clock is under suspicion)": func(c *cluster, i int) {
			by := time.Duration(i) * 10 * time.Second
			c.servers[i].Step(by)
			eventually(c.t, "the server shows the step", func() bool { // Valkey reads the clock once in a while
				seconds, _ := strconv.ParseInt(c.do(i, "TIME").([]any)[0].(string), 10, 64)
				return time.Unix(seconds, 0).After(time.Now().Add(by / 2))
			})
		},
		"failing (its seal was overwritten by other data: W": func(c *cluster, i int) { c.do(i, "SET", "redlockd:seal", "x") },
		"rolled-back (its memory was rolled back: register": func(c *cluster, i int) {
			c.do(i, "ZADD", "redlockd:seal", "XX", 1, strings.Join(c.identity(i), " "))
		},
	} {
		c := newClockCluster(t, 3, long)
		one := c.daemon(blind, unhurried)
		one.idle()
		for i := 1; i < 3; i++ {
			fault(c, i)
		}
		_, err := one.lock("k", long)
		missed(t, words, err, map[string]string{"b": words, "c": words})
	}
}

// Masters that are quarantined and volatile, too, are named as quarantined, with what
// comes behind that.
func TestNoQuorum_OfIDsNamesQuarantinedMastersAndWhatTheyLackBesides(t *testing.T) {
	c := newCluster(t, 3, long)
	one := c.daemon(unhurried)
	for i := 1; i < 3; i++ {
		c.servers[i].RestartEmpty()
		one.awaitProcess(i, c.servers[i])
	}
	_, err := one.ids("n", 1)
	missed(t, "DNEXTID", err, map[string]string{"a": "is not durable", "b": "quarantined (its memory is new, votes in", "c": "quarantined (its memory is new, votes in"})
	noQuorum(t, err, "0 of 3", "when they vote, too few masters are durable for ids (NOTDURABLE)", "appendfsync always on b="+c.servers[1].Addr()+", c="+c.servers[2].Addr())
}
