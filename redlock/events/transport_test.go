package events

// transport_test.go: events on their way between daemons, without masters.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/engine"
)

// letter is message number n of a daemon: the release of key n.
func letter(daemon string, n int) string {
	key := fmt.Sprint("key-", n)
	return fmt.Sprintf("1 %s %d\n%d %d %d - 0 %d\n%s", daemon, n, Released, n, 5, len(key), key)
}

// grantOf is the grant that letter releases, reported by another daemon.
func grantOf(daemon string, n int, tokenHash string) string {
	key := fmt.Sprint("key-", n)
	return fmt.Sprintf("1 %s %d\n%d %d %d %s 60000 %d\n%s", daemon, n, Acquired, n, 5, tokenHash, len(key), key)
}

func TestTransport_AReleaseWaitsForTheEventOfItsGrant(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	s := d.ofDB(0)
	id := engine.LeaseID{Key: "key-7", Token: "a-token-granted-elsewhere"}
	tokenHash := id.Token.ShortHash()
	d.Emit(Released, id, 0, 0)
	s.receive(grantOf("a", 7, tokenHash))
	j.wants(t, "key-7", tale(Acquired, 7), tale(Released, 7))
	d.Emit(Extended, id, 0, time.Minute)
	d.Emit(Released, id, 0, 0)
	j.wants(t, "key-7", tale(Acquired, 7), tale(Released, 7), tale(Released, 0)) // granted before anybody listened
	s.receive(grantOf("a", 8, tokenHash))
	d.Emit(Released, engine.LeaseID{Key: "key-8", Token: id.Token}, 0, 0)
	j.wants(t, "key-8", tale(Acquired, 8), tale(Released, 8))
}

func TestTransport_EveryMessageIsReadOnceAndInOrder(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	s := d.ofDB(0)
	for _, n := range []int{7, 7, 8, 7, 10, 9, 10, 8, 9} { // two masters, one of them behind
		s.receive(letter("a", n))
	}
	j.wantsOrder(t, 7, 8, 9, 10)
	s.receive(letter(s.daemon, 11)) // our own, by way of a master
	s.mu.Lock()
	if len(s.senders) != 1 || len(s.senders["a"].held) > 0 {
		t.Errorf("%d messages wait to be read again, daemons %d", len(s.senders["a"].held), len(s.senders))
	}
	s.mu.Unlock()
	s.receive(letter("b", 3)) // another daemon's numbers are its own
	j.wantsOrder(t, 7, 8, 9, 10, 3)
	if n := d.EventCounts(); n.Received != 5 || n.Missed != 0 {
		t.Errorf("%+v", n)
	}
}

func TestTransport_AMessageThatDoesNotComeIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	s := d.ofDB(0)
	for _, n := range []int{1, 4, 6} {
		s.receive(letter("a", n))
	}
	j.wantsOrder(t, 1, 4, 6)
	s.receive(letter("a", 5)) // too late
	s.receive(letter("a", 7))
	j.wantsOrder(t, 1, 4, 6, 7)
	if n := d.EventCounts(); n.Received != 4 || n.Missed != 3 {
		t.Errorf("%+v", n)
	}
}

func TestTransport_WhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	listen(t, d)
	s := d.ofDB(0)
	s.receive(letter("a", 1))
	for n := 3; n < 3+2*maxHeldBatches; n++ { // number 2 never comes
		s.receive(letter("a", n))
	}
	for n := range 2 * maxSenders {
		s.receive(letter(fmt.Sprint("daemon-", n), 1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, senders := len(s.senders["a"].held), len(s.senders); held > maxHeldBatches || senders > maxSenders {
		t.Errorf("%d messages of %d daemons wait", held, senders)
	}
}

func TestTransport_WhatIsMalformedIsNotRead(t *testing.T) {
	for _, body := range []string{
		"", "x", "2 1 5 - 0 3\n", "2 1 5 - 0 3\nab", "0 1 5 - 0 1\na", fmt.Sprint(len(names), " 1 5 - 0 1\na"), "2 -1 5 - 0 1\na", "2 1 5 -- 0 1\na",
		"2 1 5 ABCDEF01 0 1\na", "2 1 5 - 999999999999 1\na", "2 1 5 - 0 99999999999999999999\na", "2 1 5 - 0 -1\na", "2  1 5 - 0 1\na",
		"1 1 5 - 0 1 \nab", "1 1 5 - 0 1 2\nab", "1 1 5 - 0 1 -1\nab", "1 1 5 - 0 1 1 1\nabc", fmt.Sprintf("1 1 5 - 0 1 %d\na%s", maxMeta+1, strings.Repeat("b", maxMeta+1)),
	} {
		if ev, _, ok := parseEvent(body); ok {
			t.Errorf("%q is read as %+v", body, ev)
		}
	}
	for _, message := range []string{"", "1", "1 a", "2 a 1\n", "1  1\n", "1 a -1\n", "1 a x\n", "1 a 1 1\n", "1 " + strings.Repeat("a", 65) + " 1\n"} {
		if _, _, _, ok := parseBatch(message); ok {
			t.Errorf("%q is read", message)
		}
	}
}

func FuzzBatch_ReadsNothingThatItWouldNotWrite(f *testing.F) {
	f.Add(letter("a", 1))
	f.Add("1 a 1\n1 5 6 0123abcd 7 0\n2 5 6 - 0 1\n\n")
	f.Add("1 a 1\n1 5 6 0123abcd 7 1 3\nkby\n2 5 6 - 0 1\n\n")
	f.Fuzz(func(t *testing.T, message string) {
		_, _, body, ok := parseBatch(message)
		for ok && len(body) > 0 {
			var ev Event
			before := len(body)
			if ev, body, ok = parseEvent(body); ok && (len(body) >= before || len(ev.Text()) > 97+maxMeta) {
				t.Errorf("%q of %q", ev.Text(), message)
			}
		}
	})
}

// order are the fences of the received events, in order.
func (j *journal) order() (fences []engine.Fence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.all {
		fences = append(fences, e.Fence)
	}
	return fences
}

func (j *journal) wantsOrder(t *testing.T, want ...engine.Fence) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events are told", len(want)), func() bool { return len(j.order()) >= len(want) })
	if got := j.order(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", got, want)
	}
}
