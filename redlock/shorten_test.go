package redlock

// shorten_test.go: leases that end earlier than before.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/redlocktest"
	"redlockd/redlock/scripts"
)

// scriptRenewTo sets an end, a moment.
const scriptRenewTo = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIREAT', KEYS[1], ARGV[2]) return 'renewed' end return 'not yours'"

// within runs a library's script as the masters get it, and shows what is answered
// but for the times that are left.
func (m *pureMaster) noShorten(text string, keys []string, args ...any) string {
	m.t.Helper()
	known, _, err := scripts.Load()
	if err != nil {
		m.t.Fatal(err)
	}
	began := time.Now()
	words := []any{"EVAL", known.NoShorten.Wrap(text), len(keys)}
	for _, key := range keys {
		words = append(words, key)
	}
	said, ok := m.do(append(words, args...)...).([]any)
	if !ok || len(said) < 3 || len(said[2].([]any)) != len(keys) {
		m.t.Fatalf("%s answered %v", text, said)
	}
	for i, key := range keys {
		left, now := said[2].([]any)[i].(int64), m.do("PTTL", key).(int64)
		if passed := time.Since(began).Milliseconds() + 2; left < now || left > now+passed {
			m.t.Errorf("%s: %d ms of %s are left, it told of %d", text, now, key, left)
		}
	}
	return fmt.Sprint(slices.Delete(said, 2, 3))
}

func TestNoShorten_NoCopyEndsEarlier(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		end, mine := m.pureEnd(), sha1Hex("mine")
		one := []string{"lock"}
		for _, c := range []struct {
			what, text   string
			had          string
			asked, wants int64 // ends; wants 0: it is gone
			says         string
		}{
			{"later", scriptRenewTo, "mine", end + 100, end + 100, "[1 [] renewed]"},
			{"as late", scriptRenewTo, "mine", end, end, "[1 [] renewed]"},
			{"earlier", scriptRenewTo, "mine", end - 100, end + 1, fmt.Sprintf("[1 [[1 %d %d %s]] renewed]", end+1, end-100, mine)},
			{"another's", scriptRenewTo, "other", end - 100, end, "[1 [] not yours]"},
			{"earlier, with a count in the value", "return redis.call('SET', KEYS[1], 'mine:2', 'PXAT', ARGV[2]).ok", "mine:1",
				end - 100, end + 1, fmt.Sprintf("[1 [[1 %d %d %s]] OK]", end+1, end-100, sha1Hex("mine:2"))},
			{"no answer", "redis.call('PEXPIREAT', KEYS[1], ARGV[2])", "mine", end + 100, end + 100, "[1 []]"},
			{"a line of flags", "#!lua flags=allow-stale\nreturn 'yes'", "mine", end, end, "[1 [] yes]"},
		} {
			if c.text[0] == '#' && m.do("EVAL", "#!lua\nreturn 1", 0) != int64(1) {
				continue // they came with Redis 7.0
			}
			m.put(c.had, end)
			if got := m.noShorten(c.text, one, "mine", c.asked); got != c.says && m.exact {
				t.Errorf("%s: answered %s, want %s", c.what, got, c.says)
			}
			if got := m.end(); m.exact && got != c.wants || !m.exact && (got < c.wants-50 || got > c.wants+50) {
				t.Errorf("%s: ends at %d, want %d", c.what, got, c.wants)
			}
		}
		m.put("mine", end)
		m.noShorten(scriptRenewTo, one, "mine", 1000) // would delete it
		if m.do("GET", "lock") != "mine" || m.exact && m.end() != end+1 {
			t.Errorf("an end that has passed: the key is %s, want it as long as before", m.holds())
		}
		m.put("mine", 0)
		if got := m.noShorten(scriptRenewTo, one, "mine", end); got != "[1 [] renewed]" || m.exact && m.end() != end {
			t.Errorf("without an expiry: %s, ends at %d", got, m.end())
		}
		m.do("DEL", "lock")
		if got := m.noShorten(scriptRetake, one, "mine", 400_000); got != "[0 [] taken]" {
			t.Errorf("free: %s", got)
		}
		m.foreignData(func(what string) {
			before := m.whole()
			m.noShorten("return redis.call('PTTL', KEYS[1]) > 0", one)
			if after := m.whole(); after != before {
				t.Errorf("%s: the key is %s, was %s", what, after, before)
			}
		})
		m.put("mine", end)
		m.do("SET", "b", "mine", "PXAT", end+40)
		got := m.noShorten(scriptRetakeTwo, []string{"lock", "b"}, "mine", 1000)
		if m.exact && (m.end() != end+1 || m.endOf("b") != end+41) || got[:6] != "[11 [[" {
			t.Errorf("of two keys: %s, ends at %d and %d", got, m.end(), m.endOf("b"))
		}
	})
}

func TestTrimScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end, mine := m.pureEnd(), sha1Hex("mine")
		m.do("DEL", "lock")
		m.unchanged("free", 0, "trim", end, end-100, mine)
		m.put("other", end)
		m.unchanged("another's", 0, "trim", end, end-100, mine)
		m.foreignData(func(what string) { m.unchanged(what, 0, "trim", end, end-100, mine) })
		for _, by := range []int64{-1, 1, 2, 8} {
			m.put("mine", end+by)
			m.unchanged("it ends at another time", 0, "trim", end, end-100, mine)
		}
		m.put("mine", end)
		if got := m.run("trim", end, end-100, mine); got != 1 || m.end() != end-100 {
			t.Errorf("its own: %d, ends at %d", got, m.end())
		}
		m.unchanged("said twice", 0, "trim", end, end-100, mine)
		m.put("mine", end)
		if got := m.run("trim", end, 1000, mine); got != 1 || m.holds() != "none" {
			t.Errorf("an end that has passed: %d, %s", got, m.holds())
		}
	})
}

// An end that the client names moves no copy to an earlier one: trim.lua does that, for the end that
// is reported here.
func TestRetimeScript_EveryBranch(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end, mine := m.pureEnd()/8*8+4, sha1Hex("mine") // as a prolonged copy ends
		m.do("DEL", "lock")
		m.leaves("free", "0", "retime", "mine", end, "")
		m.put("other", end)
		m.leaves("another's", "0", "retime", "mine", end+80, "")
		m.do("DEL", "lock")
		m.do("ZADD", "lock", end, "mine")
		m.leaves("a reader's", "-1", "retime", "mine", end+80, "")
		m.do("DEL", "lock")
		m.put("mine", 0)
		m.leaves("foreign data", "-1", "retime", "mine", end, "0")
		m.leaves("without an expiry", fmt.Sprintf("[1 1 -1 %d]", end), "retime", "mine", end, "1")
		if got := m.run("trim", -1, end, mine); got != 1 || m.end() != end {
			t.Errorf("the end of one without: %d, ends at %d", got, m.end())
		}
		m.says("later", "[1]", "retime", "mine", end+1, "") // the next value = 4 mod 8
		if m.end() != end+8 {
			t.Errorf("ends at %d, want %d", m.end(), end+8)
		}
		m.says("as late", "[1]", "retime", "mine", end+8, "")
		if m.end() != end+9 {
			t.Errorf("ends at %d, want %d", m.end(), end+9)
		}
		m.says("earlier", fmt.Sprintf("[1 1 %d %d]", end+16, end-80), "retime", "mine", end-80, "")
		if m.end() != end+16 {
			t.Errorf("ends at %d, want %d", m.end(), end+16)
		}
		m.says("prolonged since", "1", "extend", "mine", end, "alone")
		m.unchanged("a trim from before", 0, "trim", end+16, end-80, mine)
	})
}

// Who holds the key on several masters prolongs it there in every case: a trim that
// is late finds another end.
func TestMultiExtendScript_AlwaysMovesTheEndOfAnExclusiveCopy(t *testing.T) {
	t.Parallel()
	onEveryMaster(t, func(t *testing.T, m *pureMaster) {
		if !m.exact {
			return
		}
		end := m.pureEnd()
		m.put("mine", end+4)
		m.says("less than it has", "1", "multiextend", "mine", end)
		if m.end() != end+5 {
			t.Errorf("ends at %d, want %d", m.end(), end+5)
		}
		m.unchanged("a trim from before", 0, "trim", end+4, end-100, sha1Hex("mine"))
	})
}

// renews asks for another lease, in a script's words.
func renews(token string, ttl time.Duration) ScriptRequest {
	s := script(scriptRenewTo, token, "0", "k")
	s.Time.Unit = ScriptUnixMilliseconds
	return ScriptRequest{Script: s, Effect: ScriptExtends, TTL: ttl}
}

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
		"extends": func(d *daemon) error {
			o, err := d.runScript(renews("token-of-mine", 100*time.Second))
			if err == nil && (!o.Yes || o.Reply.Str != "renewed" || o.Grant.Validity() > 100*time.Second) {
				return fmt.Errorf("%+v", o)
			}
			return err
		},
		"takes": func(d *daemon) error {
			_, said, err := d.takeBy(script(scriptRetake, "token-of-mine", "100000", "k"), 100*time.Second)
			if err == nil && said.Yes.Str != "taken" {
				return fmt.Errorf("%+v", said)
			}
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
		"extends": func(d *daemon) error {
			_, err := d.runScript(renews("token-of-mine", 50*time.Second))
			return err
		},
		"takes": func(d *daemon) error {
			_, _, err := d.takeBy(script(scriptRetake, "token-of-mine", "50000", "k"), 50*time.Second)
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
		"a script, taking": func(d *daemon) error {
			_, _, err := d.takeBy(script(scriptRetake, "token-of-mine", "300000", "k"), 300*time.Second)
			return err
		},
		"a script, renewing": func(d *daemon) error { _, err := d.runScript(renews("token-of-mine", 300*time.Second)); return err },
		"an end of its own":  func(d *daemon) error { _, err := d.retime("token-of-mine", 300*time.Second); return err },
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
		"a script": func(d *daemon) error {
			o, err := d.runScript(renews("token-of-mine", 50*time.Second))
			if err == nil && !o.Yes {
				err = fmt.Errorf("%+v", o)
			}
			return err
		},
		"an end": func(d *daemon) error { _, err := d.retime("token-of-mine", 50*time.Second); return err },
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
		"a script": func(d *daemon) bool {
			o, err := d.runScript(renews("token-of-mine", 3*time.Second))
			return err == nil && o.Yes
		},
		"EXPIRE": func(d *daemon) bool {
			was, err := d.write(WriteRequest{Key: "k", Effect: WriteExpires, TTL: 3 * time.Second})
			return was && err == nil
		},
		"SET XX": func(d *daemon) bool {
			was, err := d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: "token-of-other", TTL: 3 * time.Second})
			return was && err == nil
		},
		"a script without a token": func(d *daemon) bool {
			o, err := d.runScript(ScriptRequest{Script: script("return redis.call('DEL', KEYS[1]) == 1 and 'dropped' or 'not yours'", "", "", "k"), Effect: ScriptForces})
			return err == nil && o.Yes
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

// scriptAdd adds to what is left.
const scriptAdd = "local left = redis.call('PTTL', KEYS[1]) if redis.call('GET', KEYS[1]) ~= ARGV[1] or left < 0 then return 'not yours' end redis.call('PEXPIRE', KEYS[1], left + ARGV[2]) return 'renewed'"

// Found by the simulation (libraries-3, seed 3007), which looks whether a lease rests on
// a quorum of copies: each master adds to what it has itself, and the lease had been
// prolonged with others for its quorum.
func TestScript_AddsToWhatTheClientWasPromised(t *testing.T) {
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
	more := ScriptRequest{Script: script(scriptAdd, "token-of-mine", "50000", "k"), Effect: ScriptAdds, TTL: 50 * time.Second}
	more.Script.Time = ScriptTime{}
	o, err := three.runScript(more)
	if err != nil || !o.Yes || o.Reply.Str != "renewed" || o.Grant.Validity() < 330*time.Second {
		t.Fatalf("%+v, %v", o, err)
	}
	if left := c.left("k"); left[0] < 330*time.Second || left[2] < 330*time.Second {
		t.Errorf("the masters that agreed keep it for %v: it had 300 s, and got 50 s more", left)
	}
	// Copies that are even are not asked about twice.
	d := c.daemon()
	d.takeAs("l", "token-of-mine", 50*time.Second)
	d.settled(0, 1, 2)
	before := d.Counters().Extended
	more.Script = script(scriptAdd, "token-of-mine", "50000", "l")
	more.Script.Time = ScriptTime{}
	if o, err := d.runScript(more); err != nil || !o.Yes {
		t.Fatalf("%+v, %v", o, err)
	}
	if n := d.Counters().Extended - before; n != 1 {
		t.Errorf("%d extensions for one", n)
	}
}
