package redlock

// shorten_test.go: leases that end earlier than before.

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/redlocktest"
)

// retime gives k the end that a client of one Redis names.
func (d *daemon) retime(token Token, ttl time.Duration) (Grant, error) {
	d.t.Helper()
	return redlocktest.Prolong(d.t, d.Leases, ExtendRequest{Key: "k", Token: token, TTL: ttl, Exact: true})
}

// left is how long each master keeps the key.
func (c *cluster) left(key string) (left []time.Duration) {
	c.t.Helper()
	for i := range c.servers {
		left = append(left, time.Duration(c.do(i, "PTTL", key).(int64))*time.Millisecond)
	}
	return left
}

func allLeft(left []time.Duration, from, to time.Duration) bool {
	for _, one := range left {
		if one < from || one > to {
			return false
		}
	}
	return true
}

func TestScript_AShorterEndHoldsOnEveryMaster(t *testing.T) {
	t.Parallel()
	for name, shorten := range map[string]func(d *daemon) error{
		"takes": func(d *daemon) error {
			_, err := d.retake("token-of-mine", 100*time.Second, "k")
			return err
		},
		"sets the end": func(d *daemon) error {
			g, err := d.retime("token-of-mine", 100*time.Second)
			if err == nil && (g.Validity() > 100*time.Second || g.Validity() < time.Second) {
				return fmt.Errorf("%v are left", g.Validity())
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, 10*time.Minute)
			d := c.daemon()
			d.takeAs("k", "token-of-mine", 400*time.Second)
			d.settled(0, 1, 2)
			if err := shorten(d); err != nil {
				t.Fatal(err)
			}
			// The one that was not needed for the quorum may keep its end.
			eventually(t, "a quorum ends with the shorter lease", func() bool {
				short := 0
				for _, left := range c.left("k") {
					if left > 0 && left < 110*time.Second {
						short++
					}
				}
				return short >= 2
			})
			if v, err := d.look("k"); err != nil || v.Left > 100*time.Second || v.Left < time.Second {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// What a minority shortened is part of what the old validity depends on.
func TestScript_AnExtensionThatFailsShortensNothing(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]func(d *daemon) error{
		"takes": func(d *daemon) error {
			_, err := d.retake("token-of-mine", 50*time.Second, "k")
			return err
		},
		"sets the end": func(d *daemon) error {
			_, err := d.retime("token-of-mine", 50*time.Second)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, 10*time.Minute)
			one, two := c.daemon(), c.daemon(relayed)
			one.takeAs("k", "token-of-mine", 400*time.Second)
			one.settled(0, 1, 2)
			for _, i := range []int{1, 2} {
				two.relays[i].Refuse()
				two.relays[i].Cut()
				two.await(i, "down")
			}
			before := c.ends(0, "k")
			noQuorum(t, r(two), "1 of 3")
			two.settled(0)
			if after := c.ends(0, "k"); after < before || after > before+8 {
				t.Errorf("the master that did it ends at %d, was %d", after, before)
			}
		})
	}
}

// A client that ends its lease in the least time wants no longer one if the masters are slow: the
// lease ends, and the client hears that it does.
func TestRetime_AnEndThatHasPassedMeanwhileCountsFromTheDecision(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 10*time.Minute)
	d := c.daemon(relayed)
	d.takeAs("k", "token-of-mine", 400*time.Second)
	d.settled(0, 1, 2)
	for _, r := range d.relays {
		r.Delay(40 * time.Millisecond)
	}
	if _, err := d.retime("token-of-mine", 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key is free", func() bool { _, err := c.daemon().lock("k", time.Second); return err == nil })
}

// Found by the simulation (amnesia-3, seed 20): a script that sets a shorter end is on
// its way to a slow master while its client, which the others have answered, prolongs
// the lease through another daemon. What is late must not end it there.
func TestScript_AShorterEndThatIsLateEndsNothing(t *testing.T) {
	t.Parallel()
	prolong := map[string]func(*daemon) error{
		"DLOCK TOKEN":       func(d *daemon) error { _, err := d.lockAs("k", "token-of-mine", 300*time.Second); return err },
		"DEXTEND":           func(d *daemon) error { _, err := d.extend("k", "token-of-mine", 300*time.Second); return err },
		"DEXTEND, two keys": func(d *daemon) error { _, err := d.prolongAll("token-of-mine", 300*time.Second, "k", "l"); return err },
		"DLOCK with AND": func(d *daemon) error {
			_, err := d.ask(LockRequest{Key: "k", More: []Key{"l"}, Token: "token-of-mine", TTL: 300 * time.Second})
			return err
		},
		"a retake":          func(d *daemon) error { _, err := d.retake("token-of-mine", 300*time.Second, "k"); return err },
		"an end of its own": func(d *daemon) error { _, err := d.retime("token-of-mine", 300*time.Second); return err },
	}
	begin := func(t *testing.T) (c *cluster, late, other *daemon) {
		c = newCluster(t, 3, 10*time.Minute)
		late, other = c.daemon(relayed), c.daemon()
		for _, key := range []Key{"k", "l"} {
			other.takeAs(key, "token-of-mine", 400*time.Second)
		}
		other.settled(0, 1, 2)
		return c, late, other
	}
	shortens := map[string]func(*daemon) error{
		"a retake": func(d *daemon) error { _, err := d.retake("token-of-mine", 50*time.Second, "k"); return err },
		"an end":   func(d *daemon) error { _, err := d.retime("token-of-mine", 50*time.Second); return err },
	}
	for how, shorten := range shortens {
		for name, again := range prolong {
			t.Run(how+", the question, then "+name, func(t *testing.T) {
				c, late, other := begin(t)
				late.relays[2].Pause(faulty.ToMaster)
				if err := shorten(late); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the others end with the shorter lease", func() bool { return allLeft(c.left("k")[:2], time.Second, 60*time.Second) })
				if err := again(other); err != nil {
					t.Fatal(err)
				}
				other.settled(0, 1, 2)
				late.relays[2].Resume(faulty.ToMaster)
				late.settled(0, 1, 2)
				if !allLeft(c.left("k"), 200*time.Second, 410*time.Second) {
					t.Errorf("the masters keep it for %v, asked for were 300 s", c.left("k"))
				}
			})
			t.Run(how+", the trim, then "+name, func(t *testing.T) {
				c, late, other := begin(t)
				late.relays[0].Refuse() // so that the slow master is needed
				late.relays[0].Cut()
				late.await(0, "down")
				late.idle()
				late.relays[1].Pause(faulty.ToMaster)
				// Moved by 1 ms it ends where an extension that prolongs nothing might leave it.
				c.do(2, "PEXPIREAT", "k", c.ends(2, "k")/8*8+3)
				before, said := c.ends(2, "k"), make(chan error, 1)
				go func() { said <- shorten(late) }()
				eventually(t, "the slow master has run the script", func() bool { return c.ends(2, "k") == before+1 })
				late.idleOn(2) // and has said so
				late.relays[2].Pause(faulty.ToMaster)
				late.relays[1].Resume(faulty.ToMaster)
				if err := receive(t, said); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the other ends with the shorter lease", func() bool { return allLeft(c.left("k")[1:2], time.Second, 60*time.Second) })
				if got := c.ends(2, "k"); got != before+1 {
					t.Fatalf("the slow master ends at %d, want %d: this is about a trim that is late", got, before+1)
				}
				if err := again(other); err != nil {
					t.Fatal(err)
				}
				other.settled(0, 1, 2)
				late.relays[2].Resume(faulty.ToMaster)
				late.settled(1, 2)
				if !allLeft(c.left("k"), 200*time.Second, 410*time.Second) {
					t.Errorf("the masters keep it for %v, asked for were 300 s", c.left("k"))
				}
			})
		}
	}
}

// The copy on the master that received it late, or never, lasts longer than the lease. Another client
// has got the lock by then.
func TestScript_AShorterLeaseIsOverForTheReleaseToo(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(d *daemon) bool{
		"EXPIRE": func(d *daemon) bool {
			was, err := d.write(WriteRequest{Key: "k", Effect: WriteExpires, TTL: 3 * time.Second})
			return was && err == nil
		},
		"SET XX": func(d *daemon) bool {
			was, err := d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: "token-of-other", TTL: 3 * time.Second})
			return was && err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, 10*time.Minute)
			d, other := c.daemon(relayed), c.daemon()
			d.takeAs("k", "token-of-mine", 4*time.Minute)
			d.settled(0, 1, 2)
			d.relays[2].Pause(faulty.ToMaster)
			if !ends(d) {
				t.Fatal("it is not ended")
			}
			eventually(t, "somebody else has it", func() bool { _, err := other.lock("k", time.Second*20); return err == nil })
			d.relays[2].Cut() // what is on its way there is lost
			d.relays[2].Resume(faulty.ToMaster)
			d.settled(0, 1, 2)
			c.staleCopyProvesNothing(d, "k", "token-of-mine")
		})
	}
}

// It is the lease of the same token that goes on.
func TestWrite_ALeaseThatEXPIREMadeLongerIsExtended(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 10*time.Minute)
	d := c.daemon()
	g := d.takeAs("k", "token-of-mine", time.Second)
	if was, err := d.write(WriteRequest{Key: "k", Effect: WriteExpires, TTL: 5 * time.Minute}); !was || err != nil {
		t.Fatal(was, err)
	}
	time.Sleep(g.Validity())
	if _, err := d.extend("k", "token-of-mine", time.Minute); err != nil {
		t.Errorf("behind its first end: %v", err)
	}
}

// staleCopyProvesNothing: the release of a lock that another client has got answers no, with a copy
// left on master 2 and master 0 down.
func (c *cluster) staleCopyProvesNothing(d *daemon, key Key, token Token) {
	c.t.Helper()
	if got := c.copyAt(2, string(key)); got != string(token) {
		c.t.Fatalf("the slow master holds %q: this is about a copy that is left there", got)
	}
	d.relays[0].Refuse()
	d.relays[0].Cut()
	d.await(0, "down")
	if was, err := d.unlock(key, token); was {
		c.t.Errorf("released: %v, %v, although another client has it", was, err)
	}
}

// Found by the simulation (libraries-3, seed 3007): the lease had been prolonged with another
// quorum, so what one master has is not what the client was promised. What is added is added to the
// longest copy of a quorum, and the copies are named by the end that was seen.
func TestSets_AddsToWhatTheClientWasPromised(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, 10*time.Minute)
	one, two, three := c.daemon(), c.daemon(relayed), c.daemon(relayed)
	one.takeAs("k", "token-of-mine", 50*time.Second)
	one.settled(0, 1, 2)
	for d, away := range map[*daemon]int{two: 0, three: 1} {
		d.relays[away].Refuse()
		d.relays[away].Cut()
		d.await(away, "down")
	}
	if _, err := two.lockAs("k", "token-of-mine", 300*time.Second); err != nil {
		t.Fatal(err)
	}
	two.settled(1, 2)
	v, err := three.look("k")
	if err != nil || v.Left > 60*time.Second || v.Longest < 290*time.Second {
		t.Fatalf("%+v, %v; want copies of 50 s and of 300 s", v, err)
	}
	more := ExtendRequest{Key: "k", Token: "token-of-mine", TTL: v.Longest + 50*time.Second}
	more.Seen = &v
	if g, err := three.sets(more); err != nil || g.Validity() < 330*time.Second {
		t.Fatalf("%+v, %v", g, err)
	}
	if left := c.left("k"); left[0] < 330*time.Second || left[2] < 330*time.Second {
		t.Errorf("the masters that agreed keep it for %v: it had 300 s, and got 50 s more", left)
	}
	if _, err := three.sets(more); !errors.Is(err, ErrNotHeld) {
		t.Errorf("by the ends of before: %v", err)
	}
	// A master that the view does not show gets the end, too.
	d := c.daemon()
	d.takeAs("l", "token-of-mine", 50*time.Second)
	d.settled(0, 1, 2)
	seen, err := d.look("l")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.sets(ExtendRequest{Key: "l", Token: "token-of-mine", TTL: 100 * time.Second, Seen: &seen}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all masters have the end", func() bool { return allLeft(c.left("l"), 90*time.Second, 110*time.Second) })
	more.Seen = &View{Kind: "string", Value: "token-of-mine"}
	if _, err := three.sets(more); err == nil {
		t.Error("by no ends at all it is extended")
	}
}
