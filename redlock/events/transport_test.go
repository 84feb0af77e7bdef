package events

// transport_test.go: events on their way between daemons, without masters.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/engine"
)

// line is an event of a key in a batch.
func line(kind Kind, key string, fence int, tokenHash string) string {
	return fmt.Sprintf("%d %d 5 %s 60000 %d\n%s", kind, fence, tokenHash, len(key), key)
}

// letter is message number n of a daemon: a request for key n.
func letter(daemon string, n int) string {
	return fmt.Sprintf("1 %s %d\n%s", daemon, n, line(Wanted, fmt.Sprint("key-", n), n, "-"))
}

// grantOf is message number n of a daemon: the grant of key n.
func grantOf(daemon string, n int, tokenHash string) string {
	return fmt.Sprintf("1 %s %d\n%s", daemon, n, line(Acquired, fmt.Sprint("key-", n), n, tokenHash))
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
	d.Emit(Extended, engine.LeaseID{Key: "key-6", Token: id.Token}, 0, time.Minute)
	d.Emit(Released, engine.LeaseID{Key: "key-6", Token: id.Token}, 0, 0)
	j.wants(t, "key-6", tale(Released, 0)) // granted before anybody listened
	s.receive(grantOf("a", 8, tokenHash))
	d.Emit(Released, engine.LeaseID{Key: "key-8", Token: id.Token}, 0, 0)
	j.wants(t, "key-8", tale(Acquired, 8), tale(Released, 8))
}

// The events of one daemon, in the order in which they arrive.
func TestTransport_FencesOrderEventsThatOvertakeOneAnother(t *testing.T) {
	t.Parallel()
	acquired, extended, released, lost, forced := line(Acquired, "k", 5, "0123abcd"), line(Extended, "k", 0, "0123abcd"), line(Released, "k", 5, "0123abcd"), line(Lost, "k", 5, "0123abcd"), line(Forced, "k", 5, "0123abcd")
	acquired6, released6 := line(Acquired, "k", 6, "0123abcd"), line(Released, "k", 6, "0123abcd")
	for name, c := range map[string]struct {
		arrive []string
		want   []string
		open   int // leases at the end
	}{
		"in order":                       {[]string{acquired, extended, released}, []string{tale(Acquired, 5), tale(Released, 5)}, 0},
		"a release before its grant":     {[]string{released, acquired}, []string{tale(Acquired, 5), tale(Released, 5)}, 0},
		"an extension after its release": {[]string{acquired, released, extended}, []string{tale(Acquired, 5), tale(Released, 5)}, 0},
		"all of them turned round":       {[]string{released, extended, acquired, extended}, []string{tale(Acquired, 5), tale(Released, 5)}, 0},
		"the second grant comes last":    {[]string{acquired, released, released6, acquired6}, []string{tale(Acquired, 5), tale(Released, 5), tale(Acquired, 6), tale(Released, 6)}, 0},
		"the second release in between":  {[]string{acquired, released6, acquired6}, []string{tale(Acquired, 5), tale(Acquired, 6), tale(Released, 6)}, 0},
		"the first grant comes last":     {[]string{acquired6, acquired}, []string{tale(Acquired, 6), tale(Acquired, 5)}, 1},
		"the first pair comes last":      {[]string{acquired6, released6, acquired, released}, []string{tale(Acquired, 6), tale(Released, 6), tale(Acquired, 5)}, 0},
		"the first release comes first":  {[]string{released, acquired6}, []string{tale(Released, 5), tale(Acquired, 6)}, 1},
		"the former grant comes, too":    {[]string{released6, acquired, acquired6}, []string{tale(Acquired, 5), tale(Acquired, 6), tale(Released, 6)}, 0},
		"a loss before its grant":        {[]string{lost, acquired, released}, []string{tale(Lost, 5), tale(Acquired, 5)}, 0},
		"another end than the release":   {[]string{released, forced, acquired}, []string{tale(Acquired, 5), tale(Released, 5)}, 0},
		"no grant":                       {[]string{released}, []string{tale(Released, 5)}, 0},
		"two releases and no grant":      {[]string{released, released6}, []string{tale(Released, 5), tale(Released, 6)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t)
			j := listen(t, d)
			s := d.ofDB(0)
			for n, body := range c.arrive {
				s.receive(fmt.Sprintf("1 a %d\n%s", n+1, body))
			}
			j.wants(t, "k", c.want...)
			s.mu.Lock()
			defer s.mu.Unlock()
			open := 0
			for _, g := range s.ends.queue {
				if !g.ended {
					open++
				}
			}
			if open != c.open {
				t.Errorf("%d leases are watched, want %d", open, c.open)
			}
		})
	}
}

func TestTransport_EveryMessageIsReadOnce(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	s := d.ofDB(0)
	for _, n := range []int{7, 7, 8, 7, 10, 9, 10, 8, 9} { // two masters, one of them behind
		s.receive(letter("a", n))
	}
	j.wantsOrder(t, 7, 8, 10, 9)
	s.receive(letter(s.daemon, 11)) // our own, by way of a master
	s.mu.Lock()
	if len(s.senders) != 1 {
		t.Errorf("%d daemons", len(s.senders))
	}
	s.mu.Unlock()
	s.receive(letter("b", 3)) // another daemon's numbers are its own
	s.receive(letter("b", 2)) // sent before this daemon listened
	j.wantsOrder(t, 7, 8, 10, 9, 3)
	if n := d.EventCounts(); n.Received != 5 || n.Missed != 0 {
		t.Errorf("%+v", n)
	}
}

func TestTransport_MessagesThatDoNotComeAreCounted(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	s := d.ofDB(0)
	missed := func(want int64, numbers ...int) {
		t.Helper()
		for _, n := range numbers {
			s.receive(letter("a", n))
		}
		if n := d.EventCounts().Missed; n != want {
			t.Errorf("after %v: %d are missed, want %d", numbers, n, want)
		}
	}
	missed(0, 1, 4, 6, 5) // 2 and 3 may still come
	missed(1, 66)
	missed(1, 2, 3, 3)
	missed(1, 67)            // without 3
	missed(1+59+132, 67+196) // 7 to 65, and 68 to 199
	missed(1+59+132, 199, 200)
	j.wantsOrder(t, 1, 4, 6, 5, 66, 3, 67, 67+196, 200)
	if n := d.EventCounts().Received; n != 9 {
		t.Errorf("%d are received", n)
	}
}

func TestTransport_DaemonsThatAreRememberedAreBounded(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	listen(t, d)
	s := d.ofDB(0)
	for n := range 2 * maxSenders {
		s.receive(letter(fmt.Sprint("daemon-", n), 1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if senders := len(s.senders); senders != maxSenders {
		t.Errorf("%d daemons, want %d", senders, maxSenders)
	}
}

// A later version of redlockd may have more kinds of events.
func TestTransport_AnUnknownKindIsLeftOut(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	j := listen(t, d)
	body := line(Wanted, "a", 1, "-") + line(Kind(len(names)), "b", 2, "-") + fmt.Sprint(1<<40, " 3 5 - 0 1\nc") + line(Wanted, "d", 4, "-")
	d.ofDB(0).receive("1 a 1\n" + body)
	j.wantsOrder(t, 1, 4)
}

func TestTransport_WhatIsMalformedIsNotRead(t *testing.T) {
	for _, body := range []string{
		"", "x", "2 1 5 - 0 3\n", "2 1 5 - 0 3\nab", "0 1 5 - 0 1\na", "2 -1 5 - 0 1\na", "2 1 5 -- 0 1\na",
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
