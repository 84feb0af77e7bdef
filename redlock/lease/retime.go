// This file gives leases an end that may be earlier than before, for clients that use the quorum
// as one Redis.

package lease

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"time"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/quorum"
)

// retiming is the extension of a request that is Exact. Copies that last longer report it, and
// keep their expiry until a quorum has agreed, see shorten.go.
type retiming struct{ *extension }

var _ engine.Question = (*retiming)(nil)

// Props: its text shares no call with extensions.
func (r *retiming) Props() pool.Props {
	p := r.extension.Props()
	p.Bulk = ""
	return p
}

// Command is sent however late it is: an earlier end is wanted then, too, and no copy ends earlier
// by it.
func (r *retiming) Command(m *pool.SendContext, c *pool.Command) bool {
	e, seen := r.leases.engine, ""
	if r.request.Seen != nil && !r.isUnseen(m.Lane) {
		seen = strconv.FormatInt(r.request.Seen.ends[m.Lane], 10)
	}
	c.Set("EVALSHA", e.Scripts.Retime, strconv.Itoa(len(r.keys)))
	c.Args = append(append(c.Args, r.keys...), string(r.request.Token),
		m.Decimal(quorum.Expiry(m.Time, r.request.TTL, e.Late)), engine.Flag(r.request.EndlessToo), seen, r.least(m))
	return true
}

// isUnseen reports whether the view that the request names does not show this master. Its copy is to end
// with the others, and is no vote.
func (r *retiming) isUnseen(lane int) bool {
	v := r.request.Seen
	return v != nil && (v.ends == nil || v.ends[lane] == 0)
}

// IsYes and Read see a list that begins with 1 as held, whatever it reports.
func (r *retiming) IsYes(reply pool.Reply) bool {
	n := engine.Numbers(reply)
	return len(n) > 0 && n[0] == 1
}

func (r *retiming) Read(answer pool.Answer) engine.Reading {
	lane, counts := answer.Lane, engine.CountsAsVote(answer)
	r.lost[lane] = lacksCopy(answer.Reply) && r.request.Seen == nil
	switch {
	case !counts, r.isUnseen(lane):
	case r.IsYes(answer.Reply):
		r.copies[lane] = heldCopy{held: true}
		r.keeps(lane, engine.Numbers(answer.Reply)[1:])
		return engine.Neither
	case lacksCopy(answer.Reply):
		return engine.No
	case answer.Reply.Kind == pool.ReplyInt && answer.Reply.Int == -1:
		return engine.WrongType
	}
	return engine.Uncounted
}

// keeps notes the copies of a master that last longer than requested: index, expiry, requested
// expiry of each.
func (r *retiming) keeps(lane int, reported []int64) {
	value := sha1.Sum([]byte(r.request.Token))
	for at := reported; len(at) >= 3; at = at[3:] {
		if i := at[0]; i >= 1 && i <= int64(len(r.keys)) {
			r.kept = append(r.kept, keptExpiry{lane: lane, key: r.keys[i-1], ends: at[1], set: at[2], value: hex.EncodeToString(value[:])})
		}
	}
	if len(reported) == 3*len(r.keys) {
		r.longer++
	}
}

// DecidedLocked lets the end count from the decision if masters were so slow that it has passed, and
// if all copies of a quorum last longer anyway. Otherwise a lease that was to end soon would stay
// as long as it was.
func (r *retiming) DecidedLocked(v quorum.Result) {
	r.extension.DecidedLocked(v)
	now := r.leases.engine.Clock.Now()
	if v != quorum.Granted || r.longer < r.leases.engine.Pool.Quorum() {
		return
	}
	if r.shortens = true; quorum.Deadline(r.start, r.request.TTL) <= now {
		passed := (now-r.start).Milliseconds()/quorum.ExpiryGrain*quorum.ExpiryGrain + quorum.ExpiryGrain
		for i := range r.kept {
			r.kept[i].set += passed
		}
		r.start = now
	}
}

func (r *retiming) Decided(v quorum.Result) {
	if v == quorum.Refused && r.ballot.MostlyWrongType() {
		r.finish(Grant{}, engine.ErrNoValue)
		return
	}
	r.extension.Decided(v)
}

// timeIsOver reports whether a decided extension has come too late to be relied on. A lease that was
// longer and ends earlier now promises less than before, whenever the client hears of it.
func (e *extension) timeIsOver(until, now time.Duration) bool { return until <= now && !e.shortens }
