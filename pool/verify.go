// Verification of a flush: the checks of its seal, and the delivery of its answers.

package pool

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"redlockd/pool/masterlog"
)

// finishFlush verifies the oldest flush under way and delivers the answers.
func (c *connection) finishFlush(f *flush) {
	l := c.lane
	g := l.group
	now := g.now()
	if err := f.brokenLink(); err != nil {
		c.fail(err)
		return
	}
	g.mu.Lock()
	if c.closed { // the timer was faster: everything has been answered "unknown"
		g.mu.Unlock()
		return
	}
	if c.stalled { // likewise, but the master answers again
		g.mu.Unlock()
		f.teach(l.index, g.teach) // before anything is sent: what follows from it goes first
		g.mu.Lock()
		if c.closed {
			g.mu.Unlock()
			return
		}
		evicted := f.evicted(&l.commands) // the next reading comes after the next votes
		c.again, c.lost = append(c.again, f.takeAgain()...), c.lost || f.lost
		switch c.landLocked(); {
		case evicted != nil:
			c.invalidateLocked()
		case len(c.flushes) == 0:
			c.resumeLocked()
			c.sendAgainLocked()
		}
		g.mu.Unlock()
		if evicted != nil {
			c.fail(evicted)
		}
		return
	}
	c.landLocked()
	l.rtt.Note(now - f.sent)
	c.trips.note(now, now-f.sent)
	var seal Seal
	var ending error
	if f.readSettings && l.noteRecords(&f.readings, f.replies, g.now()) {
		g.checkRecordsReadLocked()
	}
	if f.sealed || f.beat {
		seal, ending = c.verifySealLocked(f, now)
	}
	var sealed []unsealedAnswer
	if f.sealed {
		sealed, c.unsealed = c.unsealed, nil
	}
	c.again, c.lost, c.aloneUntil = append(c.again, f.takeUnexecuted(now, c.flushes)...), c.lost || f.lost, max(c.aloneUntil, f.aloneUntil)
	c.returned = c.returned || c.lost || len(c.again) > 0
	c.sendAgainLocked()
	l.beat = l.beat || f.lost // another process may have answered, which has no scripts
	if !f.sealed && now-f.sent <= g.pool.options.MasterTimeout {
		c.unsealed = f.takeUnsealed(c.unsealed)
	}
	stepped := g.resolveAnomaliesLocked(now)
	g.mu.Unlock()

	for _, v := range sealed {
		g.answer(v.entry.op, Answer{Lane: l.index, Sent: true, Reply: v.reply, Seal: seal})
	}
	l.votes.add(f.answers(l.index, seal, g.answer))
	c.logErrors(f, now)
	if ending = cmp.Or(ending, f.endingReply()); ending == nil {
		c.noteReadings(f)
		ending = f.settingsChanged()
	}
	if ending != nil {
		c.fail(ending)
	}
	stepped.fail(errStepped)
}

// logErrors logs the operations that the server refused in a flush. The errors of the
// readings of its settings, and of the seal, are reported elsewhere.
func (c *connection) logErrors(f *flush, now time.Duration) {
	l := c.lane
	for i, at := range f.index {
		if at < 0 {
			continue
		}
		err, ok := f.reply(i).Err.(MasterError)
		if ok && masterlog.IsServerRefusal(err) && l.errorLog.ShouldLog(string(err), now) {
			l.group.pool.options.Logger.Warn("master returned an error", "master", l.master.Name, "db", l.group.db, "err", err.Error())
		}
	}
}

// verifySealLocked checks the seal and counts a void one. The second result ends the connection.
func (c *connection) verifySealLocked(f *flush, now time.Duration) (seal Seal, ending error) {
	l := c.lane
	seal, l.failing = c.checkSealLocked(f, now)
	err := l.failing
	if err == nil {
		return seal, nil
	}
	if isOneOf(err, losses) {
		c.invalidateLocked()
		l.older = l.older || errors.Is(err, errRolledBack)
	}
	l.group.counters.VoidSeals++
	l.group.counters.Void[voidReason(err)]++
	l.voteLog.Absent(now, false, err)
	seal = Seal{IncarnationID: c.incarnation.ID, Err: err}
	switch {
	case isOneOf(err, endings):
		return seal, err
	case errors.Is(err, errLate) && f.estimateBehind(l.group.pool.options.MasterTimeout, now):
		return seal, errEstimateBehind
	}
	return seal, nil
}

func (c *connection) checkSealLocked(f *flush, now time.Duration) (seal Seal, err error) {
	l := c.lane
	old, us, err := f.readSeal()
	if err != nil {
		return seal, err
	}
	l.carriedAt = f.sent
	top := old
	if f.sealed {
		raised := f.replies[f.sealAt+1]
		if err := raised.Err; err != nil {
			return seal, cmp.Or(f.evicted(&l.commands), fmt.Errorf("cannot raise its register: %w", err)) // a full master may evict
		}
		if f.raise > old && raised.Int != 1 {
			return seal, errNotRaised
		}
		top = max(old, f.raise)
	}
	if err := f.evicted(&l.commands); err != nil {
		return seal, err
	}
	if err := l.checkClockLocked(f, now, us); err != nil {
		return seal, err
	}
	f.minRegister = max(f.minRegister, l.acked) // by now that includes the flushes in front of it
	if err := f.checkRegister(old); err != nil {
		return seal, err
	}
	return c.goodSealLocked(f, old, top, us), nil
}

// checkClockLocked checks what the master's clock showed at the end of the flush.
func (l *lane) checkClockLocked(f *flush, now time.Duration, us int64) error {
	g, o := l.group, &l.group.pool.options
	if g.pool.embedded() { // its clock is this daemon's own, which cannot step, gain or be misjudged
		if l.est = g.pool.inProcess.estimate(); now-f.sent > o.MasterTimeout {
			g.counters.LateFlushes++
			return errLate
		}
		return nil
	}
	if l.est.Deviation(f.sent, now, us) != 0 || l.anomaly != nil {
		g.noteAnomalyLocked(l, f.sent, now, us)
	}
	anew, err := l.check(o, f.sent, now, f.context.Time, us)
	switch {
	case anew:
		l.requestClockLocked()
	case errors.Is(err, errLate):
		g.counters.LateFlushes++
	case err == nil && l.creptLocked(now, us):
		return errCrept
	case err == nil:
		if now-f.sent > o.MasterTimeout {
			g.counters.LateReads++
		}
		l.observe(o, f.sent, now, us)
	}
	return err
}

func (c *connection) goodSealLocked(f *flush, old, top, us int64) Seal {
	l := c.lane
	g := l.group
	now := g.now()
	if median := g.medianLocked(now); old > median+10_000_000 && old > g.hybrid.Seen && l.errorLog.ShouldLog("register ahead", now) { // under load nearly each flush finds it
		l.group.pool.options.Logger.Warn("register is far ahead of the clocks; fences follow it", "master", l.master.Name, "db", g.db, "register", old, "ahead_ms", (old-median)/1000,
			"hint", "after bootstrap --fence-above: nothing, until the clocks have reached it; otherwise a clock was ahead: see Clocks in the runbook")
	}
	l.acked = max(l.acked, top)
	g.hybrid.Observe(old)
	g.updateClockLocked()
	quarantined := !c.incarnation.MayVote(us, g.pool.options.Age())
	if !quarantined {
		l.voteLog.Voted(now, c.incarnation.ID)
	}
	l.provedAt = f.sent
	return Seal{
		Good: true, Quarantined: quarantined, Age: c.incarnation.Age(us), WorkAge: c.incarnation.WorkAge(us), Durable: c.incarnation.Durable,
		IncarnationID: c.incarnation.ID, Old: old, Top: top,
	}
}
