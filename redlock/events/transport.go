// Transport of events between daemons, in numbered batches.
//
// The events of a few milliseconds leave as one numbered batch, which every master carries to
// all daemons that listen. A receiver takes the first copy of each number, when it arrives. A
// batch may arrive before its predecessor: masters are not equally fast, and one may have been
// away when the predecessor was sent. The fences show the order of such events (expirywatch.go).
//
// A batch is text: the line "1 daemon number", and for each event the line "kind fence time
// token-hash lasts length" with the key behind it. With a text of the holder, the line has its
// length, too, and the text stands behind the key.

package events

import (
	"cmp"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"redlockd/redlock/engine"
)

const (
	// batchInterval is how long events are gathered: the cost of one message is then spread
	// over all events of a busy moment.
	batchInterval = 10 * time.Millisecond
	// maxBatchSize bounds a batch in bytes, and so what a daemon sends to a master: 6 MB a
	// second. Events that do not fit are dropped.
	maxBatchSize = 64 << 10
	// maxSenders and senderTimeout bound what is remembered of other daemons.
	maxSenders    = 256
	senderTimeout = time.Minute
	// maxLease bounds the lease times that are accepted from other daemons.
	maxLease = 24 * time.Hour
	// maxMeta bounds the texts that are accepted from other daemons.
	maxMeta = 512
)

// sender has the numbers of the batches that a daemon sent.
type sender struct {
	newest uint64        // the largest one received
	seen   uint64        // bit i: newest-i was received
	since  time.Duration // when the last batch came
}

// take notes a number. It is new unless it was received before, or is more than 63 below the
// newest one. missed counts those that are too old from now on and were never received.
func (s *sender) take(number uint64) (isNew bool, missed int64) {
	if number > s.newest {
		further := number - s.newest
		forgotten := min(further, 64)
		missed = int64(bits.OnesCount64(^s.seen>>(64-forgotten))) + int64(further-forgotten)
		s.newest, s.seen = number, s.seen<<further|1
		return true, missed
	}
	bit := uint64(1) << (s.newest - number) // 0 if it is too old
	isNew = s.seen&bit != bit
	s.seen |= bit
	return isNew, 0
}

// appendEvent adds an event to a batch.
func appendEvent(batch []byte, ev *Event) []byte {
	for _, n := range []int64{int64(ev.Kind), int64(ev.Fence), ev.At.UnixMilli()} {
		batch = append(strconv.AppendInt(batch, n, 10), ' ')
	}
	batch = append(append(batch, cmp.Or(ev.TokenHash, noTokenHash)...), ' ')
	batch = append(strconv.AppendInt(batch, ev.lasts.Milliseconds(), 10), ' ')
	batch = strconv.AppendInt(batch, int64(len(ev.Key)), 10)
	if ev.Meta != "" {
		batch = strconv.AppendInt(append(batch, ' '), int64(len(ev.Meta)), 10)
	}
	return append(append(append(batch, '\n'), ev.Key...), ev.Meta...)
}

// parseBatch reads the first line; the events are read in their turn.
func parseBatch(message string) (daemon string, number uint64, body string, ok bool) {
	head, body, _ := strings.Cut(message, "\n")
	words := strings.Split(head, " ")
	if len(words) != 3 || words[0] != "1" || words[1] == "" || len(words[1]) > 64 {
		return "", 0, "", false
	}
	number, err := strconv.ParseUint(words[2], 10, 63)
	return words[1], number, body, err == nil
}

// parseEvent reads one event and returns what follows it. The Kind is 0 if a later version of
// redlockd has added it.
func parseEvent(body string) (ev Event, rest string, ok bool) {
	head, rest, _ := strings.Cut(body, "\n")
	words := strings.Split(head, " ")
	if len(words) < 6 || len(words) > 7 {
		return Event{}, "", false
	}
	var n [7]int64
	for i, word := range words {
		if i == 3 {
			continue
		}
		var err error
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil || n[i] < 0 {
			return Event{}, "", false
		}
	}
	if n[0] == 0 || n[4] > maxLease.Milliseconds() || !isTokenHash(words[3]) ||
		n[5] > int64(len(rest)) || n[6] > int64(len(rest))-n[5] || n[6] > maxMeta {
		return Event{}, "", false
	}
	key, rest := rest[:n[5]], rest[n[5]:]
	ev = Event{
		Fence: engine.Fence(n[1]), At: time.UnixMilli(n[2]), lasts: time.Duration(n[4]) * time.Millisecond,
		Key: engine.Key(key), Meta: rest[:n[6]],
	}
	if n[0] < int64(len(names)) {
		ev.Kind = Kind(n[0])
	}
	if words[3] != noTokenHash {
		ev.TokenHash = words[3]
	}
	return ev, rest[n[6]:], true
}

func isTokenHash(word string) bool {
	return word == noTokenHash || len(word) == 8 && strings.Trim(word, "0123456789abcdef") == ""
}
