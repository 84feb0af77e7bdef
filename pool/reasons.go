// Reasons: why a master does not vote, or its answer does not count, and how soon it is dialled again.

package pool

import (
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"redlockd/pool/admission"
)

// Reasons why an operation is not sent to a master.
var (
	errClosed    = errors.New("the daemon is closing its connections")
	errLeft      = errors.New("it is not in the list of masters any more")
	errQueueFull = errors.New("queue full")
	errDrained   = errors.New("it is being drained")
	errNoClocks  = errors.New("waits for the clocks of a quorum of masters")
	errNoRecords = errors.New("waits until the records of a quorum of masters are read")
)

// Reasons why a connection ends.
var (
	errStalled  = errors.New("did not answer in time: it or the network stood still")
	errPanic    = errors.New("internal error in a lane")
	errSettings = errors.New("its settings changed, it must be admitted again")
	errEvicted  = errors.New("it may have evicted locks")
	errStepped  = errors.New("its clock stepped; its locks may be lost, so it starts a new incarnation")

	errOtherEpoch = errors.New("the configuration of the group changed, it must be admitted again")
)

// Reasons why a flush does not count.
var (
	errMemoryGone     = errors.New("its seal is another one or gone (written anew by a change of the group or by another daemon; or its memory was flushed, swapped or replaced)")
	errNotRaised      = errors.New("its register was not raised: its seal was written by another daemon or a change of the group within the flush")
	errBalanced       = errors.New("another process answers on this connection: masters must be reached directly, not through a balancer")
	errLate           = errors.New("answered too late to count")
	errEstimateBehind = errors.New("its clock was misjudged and is measured anew")
	errSuspect        = errors.New("its clock is under suspicion")
	errBehind         = errors.New("its clock is behind its estimate")
	errUnobserved     = errors.New("its clock went unwatched and is measured anew")
	errCrept          = errors.New("its clock gained too much in small steps; its locks may be lost, so it starts a new incarnation")
	errRolledBack     = errors.New("its memory was rolled back")
	errDamaged        = errors.New("its register is damaged")
	errForeign        = errors.New("its seal was overwritten by other data")
	errUnexpectedSeal = errors.New("answered the seal with something unexpected")
)

// endings are reasons that only a new admission settles, losses those after which the memory
// may lack what it acknowledged.
var (
	endings = []error{errBalanced, errMemoryGone, errForeign, errEvicted, errCrept, errRolledBack, errDamaged}
	losses  = []error{errEvicted, errCrept, errRolledBack}
)

func isOneOf(err error, reasons []error) bool {
	return slices.ContainsFunc(reasons, func(reason error) bool { return errors.Is(err, reason) })
}

// States of a master that several files name.
const (
	votingState      = "voting"      // its consent counts
	quarantinedState = "quarantined" // not yet
	dialingState     = "dialing"     // its first connection is being made
)

// humanDuration is a duration for people.
func humanDuration(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// minRetryDelay is also the interval between dials of a server that does not answer: they
// cost next to nothing, and clients wait for the server. With it a quorum that returned
// granted again after 7 to 40 ms; with delays that doubled, after 137 to 634 ms.
// A server that answers and is unfit waits for its operator.
const (
	minRetryDelay = 25 * time.Millisecond
	maxRetryDelay = time.Second
)

// retryLimit is the longest delay between two dials.
func retryLimit(cause error) time.Duration {
	var reason *admission.Unfit
	var reply *rueidis.RedisError
	if errors.As(cause, &reason) || errors.As(cause, &reply) {
		return maxRetryDelay
	}
	return minRetryDelay
}
