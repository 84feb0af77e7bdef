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
	"fmt"
	"maps"
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
	// noTokenHash stands for a token hash that is not known.
	noTokenHash = "-"
)

// batch is the next batch to send. dbEvents.mu guards it.
type batch struct {
	text    []byte
	number  uint64 // of the last batch
	sending bool   // the timer is set, or a batch is about to leave
}

// addToBatchLocked adds an event to the next batch.
func (s *dbEvents) addToBatchLocked(ev *Event) {
	if len(s.text)+len(ev.Key)+len(ev.Meta)+128 > maxBatchSize {
		s.events.counts.Dropped.Add(1)
		return
	}
	line := s.text
	for _, n := range []int64{int64(ev.Kind), int64(ev.Fence), ev.At.UnixMilli()} {
		line = append(strconv.AppendInt(line, n, 10), ' ')
	}
	line = append(append(line, cmp.Or(ev.TokenHash, noTokenHash)...), ' ')
	line = append(strconv.AppendInt(line, ev.lasts.Milliseconds(), 10), ' ')
	line = strconv.AppendInt(line, int64(len(ev.Key)), 10)
	if ev.Meta != "" {
		line = strconv.AppendInt(append(line, ' '), int64(len(ev.Meta)), 10)
	}
	s.text = append(append(append(line, '\n'), ev.Key...), ev.Meta...)
	if s.sending {
		return
	}
	s.sending = true
	s.clock().AfterFunc(batchInterval, s.onBatchTimer)
}

// onBatchTimer sends the gathered batch.
func (s *dbEvents) onBatchTimer() {
	s.mu.Lock()
	s.number++
	message := fmt.Sprintf("1 %s %d\n%s", s.daemon, s.number, s.text)
	s.text = s.text[:0]
	s.mu.Unlock()
	engine.Publish(s.events.engine.Pool, s.group, s.group.Events.Channel, message)
	s.events.counts.Sent.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.text) > 0 { // gathered while this batch was sent
		s.clock().AfterFunc(batchInterval, s.onBatchTimer)
		return
	}
	s.sending = false
}

// otherDaemons are the other daemons that send events. dbEvents.mu guards them.
type otherDaemons struct{ senders map[string]*sender }

// sender has the numbers of the batches that a daemon sent.
type sender struct {
	newest uint64        // the largest one received
	seen   uint64        // bit i: newest-i was received
	since  time.Duration // when the last batch came
}

// take notes a number. It is new unless it was received before, or is more than 63 below the
// newest one. missed counts those that are too old from now on and were never received.
func (f *sender) take(number uint64) (isNew bool, missed int64) {
	if number > f.newest {
		further := number - f.newest
		forgotten := min(further, 64)
		missed = int64(bits.OnesCount64(^f.seen>>(64-forgotten))) + int64(further-forgotten)
		f.newest, f.seen = number, f.seen<<further|1
		return true, missed
	}
	bit := uint64(1) << (f.newest - number) // 0 if it is too old
	isNew = f.seen&bit != bit
	f.seen |= bit
	return isNew, 0
}

// receive takes a message from one of the masters.
func (s *dbEvents) receive(message string) {
	name, number, body, ok := parseBatch(message)
	if !ok || name == s.daemon {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		return
	}
	from := s.senderLocked(name, number)
	if from == nil {
		return
	}
	isNew, missed := from.take(number)
	s.events.counts.Missed.Add(missed)
	if !isNew {
		return
	}
	from.since = s.clock().Now()
	s.events.counts.Received.Add(1)
	for len(body) > 0 {
		var ev Event
		if ev, body, ok = parseEvent(body); !ok {
			return
		}
		if ev.Kind != 0 {
			s.takeLocked(ev, name)
		}
	}
}

// senderLocked finds or adds a daemon; nil if there are too many. The first number from a new
// daemon begins its sequence.
func (s *dbEvents) senderLocked(name string, number uint64) *sender {
	if from := s.senders[name]; from != nil {
		return from
	}
	if s.senders == nil {
		s.senders = map[string]*sender{}
	}
	if len(s.senders) >= maxSenders {
		now := s.clock().Now()
		maps.DeleteFunc(s.senders, func(_ string, from *sender) bool { return now-from.since > senderTimeout })
		if len(s.senders) >= maxSenders {
			return nil
		}
	}
	from := &sender{newest: number - 1, seen: ^uint64(0)}
	s.senders[name] = from
	return from
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
