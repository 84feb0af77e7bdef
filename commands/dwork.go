// DWORK key timeout MAX n [WAIT ms] [KEEP ms] [META text]: one of many workers
// does a piece of work; if it dies, another takes over, n times at most.

package commands

import (
	"fmt"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

const (
	// maxAttempts bounds MAX: more is a case for a queue.
	maxAttempts = 1_000_000
	// minKeep is the shortest memory of an end: below it there is none.
	minKeep = time.Millisecond
)

// blocksWork makes DWORK with WAIT hold back the later commands of its connection,
// as BLPOP does. Only words at the place of an option count: META may contain
// anything.
func blocksWork(args []string) bool {
	for i := 3; i < len(args); i += 2 {
		if isWord(args[i], "WAIT") {
			return true
		}
	}
	return false
}

// dwork answers [acquired, attempt, token, validity, fence, last],
// [running, attempt, retry-ms], [done, attempt] or [exhausted, n].
func (t *Table) dwork(c *Call) error {
	request, err := t.workRequest(c)
	if err != nil {
		return err
	}
	at := access.WorkQuotaKey(request.DB, request.Key)
	slot, err := t.deps.Users.Reserve(c.Rights(), at)
	if err != nil {
		c.Reply(Error("TRYLATER", err.Error()))
		return nil
	}
	answer := &workAnswer{works: t.deps.Works, completer: c.Completer, users: t.deps.Users, slot: slot, at: at, onClose: &c.Client.OnClose}
	leave := t.deps.Works.Work(c.Batch, request, answer.decided)
	if request.Wait > 0 {
		c.Client.OnClose.setWait(leave)
	}
	return nil
}

func (t *Table) workRequest(c *Call) (redlock.WorkRequest, error) {
	request := redlock.WorkRequest{DB: c.Client.DB}
	words := c.Words()
	var err error
	if request.Key, err = parseWork(words.next()); err != nil {
		return request, err
	}
	if request.Timeout, err = t.leaseBounds().parseTime("timeout", words.next()); err != nil {
		return request, err
	}
	for words.more() {
		if err := t.workOption(&words, &request); err != nil {
			return request, err
		}
	}
	if request.Max == 0 {
		return request, fmt.Errorf("option MAX is missing: say how many attempts there may be, 1 to %d", maxAttempts)
	}
	return request, nil
}

// leaseBounds are the bounds of an attempt's lease, those of a lock's.
func (t *Table) leaseBounds() bounds { return milliseconds(minTTL, t.deps.MaxTTL, "--max-ttl") }

// workOption reads one option and its value into the request.
func (t *Table) workOption(words *arguments, request *redlock.WorkRequest) error {
	name, value, err := words.option()
	if err != nil {
		return err
	}
	switch name {
	case "MAX":
		request.Max, err = bounds{min: 1, max: maxAttempts}.parse(name, value)
	case "WAIT":
		request.Wait, err = milliseconds(0, t.deps.MaxWait, "--max-wait").parseTime(name, value)
		if request.Wait == 0 { // for ever, which ends as every wait does
			request.Wait = t.deps.MaxWait
		}
	case "KEEP":
		request.Keep, err = milliseconds(minKeep, t.deps.MaxKeep, "--max-keep").parseTime(name, value)
	default:
		request.Meta, err = parseMeta(value)
	}
	return err
}

// workAnswer is the reply of one DWORK from the request to the socket. The
// session calls Reply and Undelivered one after the other, never at the same time.
type workAnswer struct {
	works     Works
	completer Completer
	users     *access.Users
	slot      access.Slot // in the user's quota
	at        access.HeldKey
	onClose   *OnClose

	work      redlock.Work
	givenBack bool
}

// decided takes the outcome from the masters.
func (a *workAnswer) decided(work redlock.Work, err error) {
	if err != nil || work.State != redlock.WorkAcquired {
		a.slot.Free()
	} else {
		a.slot.Fill(a.at, work.Token, work.Validity())
	}
	if err == nil && work.State == redlock.WorkRunning {
		err = a.onClose.expelled()
	}
	if err != nil {
		a.completer.Complete(failure(err))
		return
	}
	state, attempt := Simple(string(work.State)), Int(work.Attempt)
	switch work.State {
	case redlock.WorkAcquired:
		a.work = work
		a.completer.CompleteDeferred(a)
	case redlock.WorkRunning:
		a.completer.Complete(Array(state, attempt, Int(roundUp(work.Retry))))
	default:
		a.completer.Complete(Array(state, attempt))
	}
}

// roundUp is a time in whole milliseconds that is not shorter: a client that retries
// after it must not be too early.
func roundUp(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}

// Reply reports what is left of the attempt's lease at the moment it is written,
// as DLOCK does.
func (a *workAnswer) Reply() Reply {
	validity := a.work.Validity()
	if validity < time.Millisecond {
		a.giveBack()
		return tooLate(a.work.Spent(), "the attempt is given back")
	}
	last := int64(0)
	if a.work.Last {
		last = 1
	}
	return Array(
		Simple(string(a.work.State)),
		Int(a.work.Attempt),
		Bulk(string(a.work.Token)),
		Int(validity.Milliseconds()),
		Int(int64(a.work.Fence)),
		Int(last),
	)
}

// Undelivered: the client has gone without reading that the work is its own.
func (a *workAnswer) Undelivered() { a.giveBack() }

// giveBack undoes the attempt once; it is not used up.
func (a *workAnswer) giveBack() {
	if !a.givenBack {
		a.givenBack = true
		a.users.Released(a.at, a.work.Token)
		a.works.WorkGiveBack(a.work)
	}
}
