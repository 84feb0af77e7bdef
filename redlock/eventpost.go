// Events on their way between daemons.
//
// What happened within a few milliseconds leaves as one numbered message, which
// every master carries to everybody who listens. A receiver takes the first copy
// of each number. A number may come before its predecessor: masters are not
// equally fast, and one may have been away when the predecessor was sent. Then
// the predecessor is waited for, so that events of one daemon are delivered in
// the order in which they happened.
//
// A message is text: the line "1 daemon number", and for each event the line
// "kind fence time mark lasts length" with the key behind it.
package redlock

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockd/pool"
)

const (
	// postEvery is how long events are gathered: what one message costs is
	// then spread over all events of a busy moment.
	postEvery = 10 * time.Millisecond
	// longestPost bounds a message in bytes, and so what a daemon sends to a
	// master: 6 MB a second. What does not fit is dropped.
	longestPost = 64 << 10
	// gapPatience is how long a message waits for its predecessor.
	gapPatience = 100 * time.Millisecond
	// mostHeld is how many messages of a daemon wait for a predecessor.
	mostHeld = 64
	// mostSenders and senderSilence bound what is remembered of daemons.
	mostSenders   = 256
	senderSilence = time.Minute
	// longestLease bounds what is believed of another daemon's leases.
	longestLease = 24 * time.Hour
	// noMark stands for a mark that is not known.
	noMark = "-"
)

// outbox is what leaves with the next message. The stage guards it.
type outbox struct {
	post    []byte
	number  uint64 // of the last message
	leaving bool   // the alarm is set, or a message is about to leave
	alarm   pool.Timer
}

// postLocked puts an event into the next message.
func (s *stage) postLocked(ev *Event) {
	if len(s.post)+len(ev.Key)+128 > longestPost {
		s.events.counts.dropped.Add(1)
		return
	}
	mark := ev.Mark
	if mark == "" {
		mark = noMark
	}
	line := s.post
	for _, n := range []int64{int64(ev.Kind), int64(ev.Fence), ev.At.UnixMilli()} {
		line = append(strconv.AppendInt(line, n, 10), ' ')
	}
	line = append(append(line, mark...), ' ')
	line = append(strconv.AppendInt(line, ev.lasts.Milliseconds(), 10), ' ')
	line = append(strconv.AppendInt(line, int64(len(ev.Key)), 10), '\n')
	s.post = append(line, ev.Key...)
	if s.leaving {
		return
	}
	s.leaving = true
	if s.outbox.alarm == nil {
		s.outbox.alarm = s.clock().AfterFunc(postEvery, s.leaves)
		return
	}
	s.outbox.alarm.Reset(postEvery)
}

// leaves sends what was gathered.
func (s *stage) leaves() {
	s.mu.Lock()
	s.number++
	message := fmt.Sprintf("1 %s %d\n%s", s.daemon, s.number, s.post)
	s.post = s.post[:0]
	s.mu.Unlock()
	s.group.Publish(message)
	s.events.counts.sent.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.post) > 0 { // it was gathered while this one was sent
		s.outbox.alarm.Reset(postEvery)
		return
	}
	s.leaving = false
}

// inbox is what has been heard of other daemons. The stage guards it.
type inbox struct{ senders map[string]*sender }

// sender is one daemon's messages, in order.
type sender struct {
	name  string
	next  uint64            // the number that is waited for
	held  map[uint64]string // what came before its predecessor
	since time.Duration     // the last message came
	alarm pool.Timer        // the predecessor has been waited for long enough
}

func (b *inbox) forget() {
	for _, from := range b.senders {
		if from.alarm != nil {
			from.alarm.Stop()
		}
	}
	b.senders = nil
}

// receive takes a message from one of the masters.
func (s *stage) receive(message string) {
	name, number, body, ok := readPost(message)
	if !ok || name == s.daemon {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		return
	}
	from := s.senderLocked(name, number)
	if from == nil || number < from.next {
		return
	}
	from.since = s.clock().Now()
	if from.held == nil {
		from.held = map[uint64]string{}
	}
	from.held[number] = body
	s.readLocked(from)
	if len(from.held) > mostHeld {
		s.skipLocked(from)
	}
	if len(from.held) > 0 {
		s.hurryLocked(from)
	}
}

// senderLocked finds a daemon; what is heard first of a new one begins its row.
func (s *stage) senderLocked(name string, number uint64) *sender {
	if from := s.senders[name]; from != nil {
		return from
	}
	if s.senders == nil {
		s.senders = map[string]*sender{}
	}
	if len(s.senders) >= mostSenders {
		now := s.clock().Now()
		for other, from := range s.senders {
			if now-from.since > senderSilence {
				delete(s.senders, other)
			}
		}
		if len(s.senders) >= mostSenders {
			return nil
		}
	}
	from := &sender{name: name, next: number}
	s.senders[name] = from
	return from
}

// readLocked takes the messages whose turn it is.
func (s *stage) readLocked(from *sender) {
	for {
		body, ok := from.held[from.next]
		if !ok {
			return
		}
		delete(from.held, from.next)
		from.next++
		s.events.counts.received.Add(1)
		for len(body) > 0 {
			var ev Event
			if ev, body, ok = readEvent(body); !ok {
				return
			}
			s.takeLocked(ev, from.name)
		}
	}
}

// hurryLocked sets an end to the wait for a predecessor.
func (s *stage) hurryLocked(from *sender) {
	if from.alarm != nil {
		return
	}
	waited := from.next
	from.alarm = s.clock().AfterFunc(gapPatience, func() { s.giveUpWait(from, waited) })
}

func (s *stage) giveUpWait(from *sender, waited uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from.alarm = nil
	if s.senders[from.name] != from || len(from.held) == 0 {
		return
	}
	if from.next == waited {
		s.skipLocked(from)
	}
	if len(from.held) > 0 {
		s.hurryLocked(from)
	}
}

// skipLocked goes on with the first message that is there.
func (s *stage) skipLocked(from *sender) {
	first := ^uint64(0)
	for number := range from.held {
		first = min(first, number)
	}
	s.events.counts.missed.Add(int64(first - from.next))
	from.next = first
	s.readLocked(from)
}

// readPost reads the first line; the events are read in their turn.
func readPost(message string) (daemon string, number uint64, body string, ok bool) {
	head, body, _ := strings.Cut(message, "\n")
	words := strings.Split(head, " ")
	if len(words) != 3 || words[0] != "1" || words[1] == "" || len(words[1]) > 64 {
		return "", 0, "", false
	}
	number, err := strconv.ParseUint(words[2], 10, 63)
	return words[1], number, body, err == nil
}

// readEvent reads one event and what follows it.
func readEvent(body string) (ev Event, rest string, ok bool) {
	head, rest, _ := strings.Cut(body, "\n")
	words := strings.Split(head, " ")
	if len(words) != 6 {
		return Event{}, "", false
	}
	var n [6]int64
	for i, word := range words {
		if i == 3 {
			continue
		}
		var err error
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil || n[i] < 0 {
			return Event{}, "", false
		}
	}
	if n[0] == 0 || n[0] >= int64(len(eventWords)) || n[4] > longestLease.Milliseconds() || n[5] > int64(len(rest)) || !isMark(words[3]) {
		return Event{}, "", false
	}
	ev = Event{
		Kind: EventKind(n[0]), Fence: Fence(n[1]), At: time.UnixMilli(n[2]),
		lasts: time.Duration(n[4]) * time.Millisecond, Key: Key(rest[:n[5]]),
	}
	if words[3] != noMark {
		ev.Mark = words[3]
	}
	return ev, rest[n[5]:], true
}

func isMark(word string) bool {
	return word == noMark || len(word) == 8 && len(bytes.Trim([]byte(word), "0123456789abcdef")) == 0
}
