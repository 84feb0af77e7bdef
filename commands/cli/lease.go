// The lock of `redlockd lock`: how it is taken, extended and released.

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"redlockd/proxy/resp"
	"redlockd/redlock"
)

const (
	minPause       = 50 * time.Millisecond // between two tries, growing
	maxPause       = time.Second
	releaseTimeout = 5 * time.Second  // for the release
	waitMargin     = 10 * time.Second // beyond WAIT, until the daemon counts as gone
	defaultMaxWait = 10 * time.Minute // the daemon's --max-wait unless it reports another one
)

// errHeld: another client holds the lock, and the time to wait is over.
var errHeld = errors.New("held by another client")

// errLate: the lock was granted, and its lease was over when the client received the grant.
var errLate = errors.New("the lease ended before the daemon's answer arrived; choose a longer --ttl, or find out what is slow")

// clientLease is one lock. Its token is chosen here, so that a request whose answer was
// lost can be sent again.
type clientLease struct {
	daemons *daemons
	key     string
	ttl     time.Duration
	token   string
	meta    string // who holds it, for people
	fence   int64
	until   time.Time // when it must count as lost
}

// take requests the lock until it is granted or the time to wait is over. The first try does
// not wait, so that log receives a line where the lock is waited for.
func (l *clientLease) take(ctx context.Context, wait time.Duration, log io.Writer) error {
	end := time.Now().Add(wait)
	for tries := 0; ; tries++ {
		left := max(time.Until(end), 0)
		if tries == 0 {
			left = 0
		}
		granted, err := l.request(ctx, left)
		switch {
		case granted:
			return nil
		case err != nil && !retryable(err):
			l.release()
			return err
		case ctx.Err() != nil:
			l.release()
			return ctx.Err()
		case time.Until(end) <= 0:
			l.release()
			return cmp.Or(err, errHeld)
		case tries == 0:
			fmt.Fprintf(log, "redlockd lock: waits up to %s for %s%s\n", wait, l.key, l.waitReason(ctx, err))
		}
		pause := min(maxPause, minPause<<min(tries, 8))
		pause = min(pause/2+mrand.N(pause), time.Until(end))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// waitReason has the reason for which the first try did not get the lock: err, or the first holder as far as
// DINFO shows it. Names and notes are other clients' texts and therefore quoted.
func (l *clientLease) waitReason(ctx context.Context, err error) string {
	if err != nil {
		return ": " + err.Error()
	}
	reply, _ := l.query(ctx, "DINFO", l.key) // a failure shows nothing, either
	holders := newFields(reply).list("holders")
	if len(holders) == 0 {
		return ", " + errHeld.Error()
	}
	first, reason := newFields(holders[0]), ", held by"
	for _, name := range []string{"name", "client", "meta", "daemon", "token"} {
		if text, ok := first[name].(string); ok {
			reason += fmt.Sprintf(" %s %q", name, text)
		}
	}
	if more := len(holders) - 1; more > 0 {
		reason += fmt.Sprintf(" and %d more", more)
	}
	if left, ok := first["ttl"].(int64); ok {
		reason += fmt.Sprintf(", for %s unless it is extended", time.Duration(left)*time.Millisecond)
	}
	return reason
}

// retryable reports whether the next try may succeed.
func retryable(err error) bool {
	var refused resp.Error
	var address *net.AddrError
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &address) || errors.As(err, &certificate) {
		return false
	}
	return !errors.As(err, &refused) || slices.Contains([]string{"NOQUORUM", "EXPIRED", "TRYLATER", "SHUTDOWN"}, refused.Code())
}

// request is one DLOCK. WAIT wakes the first waiter in the queue, while clients that retry get
// the lock in no order.
func (l *clientLease) request(ctx context.Context, wait time.Duration) (granted bool, err error) {
	words := []string{"DLOCK", l.key, milliseconds(l.ttl), "TOKEN", l.token, "META", l.meta}
	waits := wait >= time.Millisecond
	if waits {
		longest, err := l.maxWait(ctx)
		if err != nil {
			return false, err
		}
		wait = min(wait, longest)
		words = append(words, "WAIT", milliseconds(wait))
	}
	reply, err := l.daemons.do(ctx, wait+waitMargin, words...)
	if err != nil || reply == nil {
		return false, err
	}
	items, _ := reply.([]any)
	if len(items) != 3 {
		return false, resp.Error(fmt.Sprintf("ERR DLOCK was answered %v, which is no grant", reply))
	}
	validity, ok1 := items[1].(int64)
	fence, ok2 := items[2].(int64)
	if !ok1 || !ok2 {
		return false, resp.Error(fmt.Sprintf("ERR DLOCK was answered %v, which is no grant", reply))
	}
	l.fence, l.until = fence, l.daemons.sent.Add(time.Duration(validity)*time.Millisecond)
	return l.confirmed(ctx, waits)
}

// confirmed reports whether the lease still runs. After WAIT the time of the request is no
// use, and nothing else bounds how long the grant was on its way. So an extension proves that
// the lock is held, and its validity counts from before it was sent.
func (l *clientLease) confirmed(ctx context.Context, waited bool) (bool, error) {
	if waited {
		until, lost, err := l.extend(ctx)
		if err != nil {
			return false, err
		}
		if l.until = until; lost {
			l.until = time.Time{}
		}
	}
	if time.Now().Before(l.until) {
		return true, nil
	}
	l.release()
	l.token = string(redlock.NewToken()) // the old one is over, and names no other lock for a while
	return false, errLate
}

// maxWait is the longest WAIT of the daemon.
func (l *clientLease) maxWait(ctx context.Context) (time.Duration, error) {
	reply, err := l.query(ctx, "CONFIG", "GET", "max-wait")
	if longest, bad := time.ParseDuration(newFields(reply).text("max-wait")); bad == nil {
		return longest, err
	}
	return defaultMaxWait, err
}

// query sends a command that only shows something; an error reply shows nothing: the user may
// have no permission.
func (l *clientLease) query(ctx context.Context, words ...string) (any, error) {
	reply, err := l.daemons.do(ctx, dialTimeout, words...)
	var refused resp.Error
	if errors.As(err, &refused) {
		return nil, nil
	}
	return reply, err
}

// extend makes the lease last ttl from now. lost means that a quorum does not have it
// any more; an error leaves everything as it was.
func (l *clientLease) extend(ctx context.Context) (until time.Time, lost bool, err error) {
	began := time.Now()
	reply, err := l.daemons.do(ctx, max(l.ttl/3, time.Second), "DEXTEND", l.key, l.token, milliseconds(l.ttl))
	if err != nil {
		return time.Time{}, false, err
	}
	validity, ok := reply.(int64)
	if !ok {
		return time.Time{}, true, nil
	}
	return began.Add(time.Duration(validity) * time.Millisecond), false, nil
}

// release releases a lock that was taken, or may have been.
func (l *clientLease) release() (released bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	for range len(l.daemons.addresses) + 1 {
		var reply any
		if reply, err = l.daemons.do(ctx, releaseTimeout, "DUNLOCK", l.key, l.token); err == nil {
			return reply == int64(1), nil
		}
	}
	return false, err
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
