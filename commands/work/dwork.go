// DWORK key timeout MAX n [WAIT ms] [KEEP ms] [META text]: one of many workers
// does a piece of work; if it dies, another takes over, n times at most.

package work

import (
	"fmt"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

const (
	// maxAttempts bounds MAX: more is a case for a queue.
	maxAttempts = 1_000_000
	// minKeep is the shortest memory of an end: below it there is none.
	minKeep = time.Millisecond
)

type handlers struct{ deps commands.Deps }

// blocksWork makes DWORK with WAIT hold back the later commands of its connection,
// as BLPOP does. Only words at the place of an option count: META may contain
// anything.
func blocksWork(args []string) bool {
	for i := 3; i < len(args); i += 2 {
		if arg.IsWord(args[i], "WAIT") {
			return true
		}
	}
	return false
}

// dwork answers [acquired, attempt, token, validity, fence, last],
// [running, attempt, retry-ms], [done, attempt], with the result if the worker left one,
// or [exhausted, n].
func (h *handlers) dwork(c *commands.Call) error {
	request, err := h.workRequest(c)
	if err != nil {
		return err
	}
	at := access.WorkQuotaKey(request.DB, request.Key)
	reservation, err := h.deps.Users.Reserve(c.Rights(), at)
	if err != nil {
		return c.Reply(commands.Error("TRYLATER", err.Error()))
	}
	answer := &workAnswer{handlers: h, call: c, reservation: reservation, at: at}
	leave := h.deps.Works.Work(c.Batch, request, answer.decided)
	if request.Wait > 0 {
		c.Client.OnClose.SetWait(leave)
	}
	return nil
}

func (h *handlers) workRequest(c *commands.Call) (redlock.WorkRequest, error) {
	words := c.Words()
	request := redlock.WorkRequest{DB: c.Client.DB, Key: words.Work(), Timeout: words.Time("timeout", h.leaseBounds())}
	for words.More() {
		switch name := words.Option(); name {
		case "MAX":
			request.Max = words.Int(name, arg.Bounds{Min: 1, Max: maxAttempts})
		case "WAIT":
			request.Wait = words.Wait(h.deps.MaxWait)
		case "KEEP":
			request.Keep = words.Time(name, arg.Milliseconds(minKeep, h.deps.MaxKeep, "--max-keep"))
		default:
			request.Meta = words.Meta()
		}
	}
	if request.Max == 0 {
		words.Fail(fmt.Errorf("option MAX is missing: give the number of attempts, 1 to %d", maxAttempts))
	}
	return request, words.Err()
}

// leaseBounds are the bounds of an attempt's lease, those of a lock's.
func (h *handlers) leaseBounds() arg.Bounds {
	return arg.Milliseconds(arg.MinTTL, h.deps.MaxTTL, "--max-ttl")
}

// workAnswer is the reply of one DWORK from the request to the socket. The
// session calls Reply and Undelivered one after the other, never at the same time.
type workAnswer struct {
	handlers    *handlers
	call        *commands.Call
	reservation access.Reservation // in the user's quota
	at          access.HeldKey

	work      redlock.Work
	givenBack bool
}

func (a *workAnswer) decided(work redlock.Work, err error) {
	if err != nil || work.State != redlock.WorkAcquired {
		a.reservation.Free()
	} else {
		a.reservation.Fill(a.at, work.Token, work.Validity()+redlock.KeepOf(work.Token)) // its record outlasts it
	}
	if err == nil && work.State == redlock.WorkRunning {
		err = a.call.Client.OnClose.Expelled()
	}
	if err != nil {
		a.call.Reply(commands.Failure(err))
		return
	}
	state, attempt := commands.Simple(string(work.State)), commands.Int(work.Attempt)
	switch work.State {
	case redlock.WorkAcquired:
		a.work = work
		a.call.Completer.CompleteDeferred(a)
	case redlock.WorkRunning:
		a.call.Reply(commands.Array(state, attempt, commands.Int(roundUp(work.Retry))))
	default:
		reply := []commands.Reply{state, attempt}
		if work.Result != nil {
			reply = append(reply, commands.Bulk(*work.Result))
		}
		a.call.Reply(commands.Array(reply...))
	}
}

// roundUp is a time in whole milliseconds that is not shorter: a client that retries
// after it must not be too early.
func roundUp(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}

// Reply reports what is left of the attempt's lease at the moment it is written,
// as DLOCK does.
func (a *workAnswer) Reply() commands.Reply {
	validity := a.work.Validity()
	if validity < time.Millisecond {
		a.giveBack()
		return commands.TooLate(a.work.ExpiredError(), "the attempt is given back")
	}
	return commands.Array(
		commands.Simple(string(a.work.State)),
		commands.Int(a.work.Attempt),
		commands.Bulk(string(a.work.Token)),
		commands.Int(validity.Milliseconds()),
		commands.Int(int64(a.work.Fence)),
		commands.Bool(a.work.Last),
	)
}

// Undelivered: the client has gone without reading that the work is its own.
func (a *workAnswer) Undelivered() { a.giveBack() }

// giveBack undoes the attempt once; it is not used up.
func (a *workAnswer) giveBack() {
	if !a.givenBack {
		a.givenBack = true
		a.handlers.deps.Users.Released(a.at, a.work.Token)
		a.handlers.deps.Works.WorkGiveBack(a.work)
	}
}
