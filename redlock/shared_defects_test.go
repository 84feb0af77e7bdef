package redlock

// shared_defects_test.go: a read-write lock of two keys, a sorted set of readers
// beside a writer's token, as a well-known description has it, and what is wrong
// with it. Each scenario goes wrong there and must not go wrong here.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
	"redlockd/redlock/scripts"
)

// twoKeys is the lock of two keys on all masters, by a majority. Its callers
// bring the time themselves.
type twoKeys struct{ *cluster }

const (
	twoKeysWrite = `redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[2])
if redis.call('ZCARD', KEYS[1]) ~= 0 or redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3]) return 1`
	twoKeysRead = `if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1]) return 1`
)

func (l twoKeys) majority(ask func(i int) any) bool {
	yes := 0
	for i := range l.servers {
		if ask(i) == int64(1) {
			yes++
		}
	}
	return yes > len(l.servers)/2
}

func (l twoKeys) write(key, token string, now time.Time, ttl time.Duration) bool {
	return l.majority(func(i int) any {
		return l.do(i, "EVAL", twoKeysWrite, 2, "r_"+key, "w_"+key, token, now.UnixMilli(), ttl.Milliseconds())
	})
}

func (l twoKeys) read(key, token string, sortKey time.Time) bool {
	return l.majority(func(i int) any {
		return l.do(i, "EVAL", twoKeysRead, 2, "r_"+key, "w_"+key, token, sortKey.UnixMilli())
	})
}

func (l twoKeys) readDone(key, token string) {
	for i := range l.servers {
		l.do(i, "ZREM", "r_"+key, token)
	}
}

// outcome is what goes wrong, in words; "" = nothing.
type scenario struct {
	defect string
	theirs func(t *testing.T, l twoKeys) string
	ours   func(t *testing.T, c *cluster) string
}

func asReader(token Token) LockRequest {
	return LockRequest{Key: "k", Mode: Readers, Token: token}
}

func scenarios() []scenario {
	return []scenario{
		{"a caller whose clock is ahead puts live readers out", func(_ *testing.T, l twoKeys) string {
			l.read("k", "a", time.Now().Add(10*time.Second))
			if l.write("k", "b", time.Now().Add(11*time.Second), time.Minute) {
				return "a reader and a writer hold it"
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			c.daemon().get(asReader(tokenA))
			if _, err := c.daemon(wrongBy(11 * time.Second)).ask(LockRequest{Key: "k", Token: tokenB}); err == nil {
				return "a reader and a writer hold it"
			}
			return ""
		}},
		{"readers whose time is over are never removed", func(_ *testing.T, l twoKeys) string {
			for i := range 50 {
				l.read("k", fmt.Sprint("reader-", i), time.Now())
			}
			return remains(l.cluster, "r_k", 1)
		}, func(t *testing.T, c *cluster) string {
			d := c.daemon()
			for range 50 {
				eventually(t, "one more reader for a moment", func() bool { // on a busy machine a moment may be too short
					_, err := d.ask(LockRequest{Key: "k", Mode: Readers, TTL: 50 * time.Millisecond})
					return err == nil
				})
			}
			// A master finds out who is over when it is asked for the key.
			eventually(t, "those whose time is over are gone", func() bool {
				g := d.get(asReader(tokenA))
				d.settled(0, 1, 2)
				gone := remains(c, "k", 1) == ""
				d.free("k", g.Token)
				return gone
			})
			d.get(asReader(tokenA))
			d.settled(0, 1, 2)
			return remains(c, "k", 1)
		}},
		{"the text says to sort readers by now", func(_ *testing.T, l twoKeys) string {
			l.read("k", "a", time.Now())
			if l.write("k", "b", time.Now().Add(time.Millisecond), time.Minute) {
				return "a reader is over when it begins"
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			d := c.daemon()
			d.get(asReader(tokenA))
			if _, err := d.ask(LockRequest{Key: "k", Token: tokenB}); err == nil {
				return "a reader is over when it begins"
			}
			return ""
		}},
		{"the release is a command that few servers know", func(_ *testing.T, l twoKeys) string {
			l.write("k", "a", time.Now(), time.Minute)
			if _, err := l.servers[0].Do("DELEX", "w_k", "IFEQ", "a"); err != nil {
				return err.Error()
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			d := c.daemon()
			g := d.get(LockRequest{Key: "k"})
			if was, err := d.unlock("k", g.Token); !was || err != nil {
				return fmt.Sprint(was, err)
			}
			return ""
		}},
		{"nobody asks how long it took", func(t *testing.T, l twoKeys) string {
			began, ttl := time.Now(), 30*time.Millisecond
			for i := range l.servers {
				l.do(i, "EVAL", twoKeysWrite, 2, "r_k", "w_k", "a", time.Now().UnixMilli(), ttl.Milliseconds())
				sleepUntil(t, began.Add(time.Duration(i+1)*20*time.Millisecond), "a slow master has answered")
			}
			if time.Since(began) > ttl { // a majority has said yes
				return "the lock is over when its holder hears of it"
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			d := c.daemon(relayed, blind)
			for _, r := range d.relays {
				r.Delay(600*time.Millisecond, faulty.ToClient)
			}
			for _, mode := range []Mode{nil, Readers, PermitsOf(1)} {
				g, err := d.ask(LockRequest{Key: "k", Mode: mode, TTL: 500 * time.Millisecond})
				var expired *Expired
				if !errors.As(err, &expired) {
					return fmt.Sprintf("%+v, %v for a lock that is over", g, err)
				}
			}
			return ""
		}},
		{"a reader that arrives after its release stays", func(_ *testing.T, l twoKeys) string {
			l.readDone("k", "a")
			l.read("k", "a", time.Now().Add(-time.Second)) // delayed on its way
			return remains(l.cluster, "r_k", 0)
		}, func(t *testing.T, c *cluster) string {
			text, err := scripts.Text("share")
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.servers {
				c.do(i, "EVAL", string(text), 1, "k", "a", time.Now().Add(-time.Second).UnixMilli())
			}
			return remains(c, "k", 0)
		}},
		{"to go on reading is to begin again, unseen", func(_ *testing.T, l twoKeys) string {
			l.read("k", "a", time.Now())
			l.write("k", "b", time.Now().Add(time.Millisecond), time.Minute)
			for i := range l.servers {
				l.do(i, "DEL", "w_k")
			}
			if l.read("k", "a", time.Now().Add(time.Minute)) {
				return "a reader goes on although a writer was there in between"
			}
			return ""
		}, func(t *testing.T, c *cluster) string {
			one, two := c.daemon(), c.daemon()
			one.get(LockRequest{Key: "k", Mode: Readers, Token: tokenA, TTL: 2 * time.Second})
			var g Grant
			eventually(t, "the reader's time is over", func() (ok bool) {
				var err error
				g, err = two.ask(LockRequest{Key: "k"})
				return err == nil
			})
			two.free("k", g.Token)
			// A master on which the reader is over a little later may prolong its copy.
			if _, err := two.prolongAll(tokenA, time.Second, "k"); !errors.Is(err, ErrNotHeld) {
				return "a reader goes on although a writer was there in between"
			}
			// The writer needed a quorum: on the last master the reader may be over a little later.
			eventually(t, "the reader is over on every master", func() bool { return remains(c, "k", 0) == "" })
			return ""
		}},
		{"a lock's name is another lock's key", func(_ *testing.T, l twoKeys) string {
			for i := range l.servers { // a plain lock, as other clients make them
				l.do(i, "SET", "w_k", "somebody", "NX", "PX", 60_000)
			}
			if !l.read("k", "a", time.Now().Add(time.Minute)) {
				return "the lock w_k keeps the readers of k out"
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			d := c.daemon()
			for _, name := range []Key{"w_k", "r_k", "k:w"} {
				d.get(LockRequest{Key: name})
			}
			if _, err := d.ask(asReader(tokenA)); err != nil {
				return err.Error()
			}
			return ""
		}},
		{"who waits in a queue of one master and dies blocks the others there", func(_ *testing.T, l twoKeys) string {
			l.do(0, "RPUSH", "q_k", "dead") // refused once, and never seen again
			if head := l.do(0, "LINDEX", "q_k", 0); head != "live" && l.do(0, "PTTL", "q_k") == int64(-1) {
				return "nobody but the dead may have it, for ever"
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			one, two := c.daemon(), c.daemon()
			g := one.get(LockRequest{Key: "k"})
			for _, r := range []LockRequest{asReader(tokenA), {Key: "k", Token: tokenB}, {Key: "k", Mode: PermitsOf(2)}} {
				two.held(r)
			}
			one.free("k", g.Token)
			if !c.empty(0, 1, 2) {
				return "a refused one has left something"
			}
			return ""
		}},
		{"a refusal does not say how long", func(_ *testing.T, l twoKeys) string {
			l.read("k", "a", time.Now().Add(time.Minute))
			if !l.write("k", "b", time.Now(), time.Minute) && l.do(0, "PTTL", "r_k") == int64(-1) {
				return "nobody can tell when the readers will be gone"
			}
			return ""
		}, func(_ *testing.T, c *cluster) string {
			d := c.daemon()
			d.get(LockRequest{Key: "k", Mode: Readers, TTL: long})
			d.held(LockRequest{Key: "k"})
			if left := c.do(0, "PTTL", "k").(int64); left <= 0 || left > (long+2*late).Milliseconds() {
				return fmt.Sprintf("the readers seem to be there for %d ms", left)
			}
			return ""
		}},
		{"tests without wrong clocks and lost answers find nothing", func(_ *testing.T, l twoKeys) string {
			record := checker.NewRecorder(nil)
			client := record.Client()
			call := client.Begin(checker.Acquire, "k", "a").AsReader()
			l.read("k", "a", time.Now().Add(5*time.Second))
			call.Granted("a", 5*time.Second, 0)
			call = client.Begin(checker.Acquire, "k", "b")
			if l.write("k", "b", time.Now().Add(6*time.Second), time.Second) {
				call.Granted("b", time.Second, 0)
			}
			return fmt.Sprint(checker.CheckReaders(record.History()))
		}, func(t *testing.T, c *cluster) string {
			record := checker.NewRecorder(nil)
			right, wrong := c.daemon(relayed).witness(record), c.daemon(wrongBy(6*time.Second)).witness(record)
			right.relays[0].Pause(faulty.ToClient) // its answers are lost
			for i := range 40 {
				reads := LockRequest{Key: "k", TTL: 5 * time.Second, Mode: Readers}
				first, ok := right.acquireAs(reads)
				wrong.acquireAs(LockRequest{Key: "k", TTL: 5 * time.Second, Token: Token(fmt.Sprint("writer-nr-", i))})
				second, also := wrong.acquireAs(reads)
				if ok {
					right.release("k", first.Token)
				}
				if also {
					wrong.release("k", second.Token)
				}
			}
			if err := checker.CheckReaders(record.History()); err != nil {
				return err.Error()
			}
			return ""
		}},
	}
}

// remains says so if a master keeps more members than it should, or any for ever.
func remains(c *cluster, key string, most int64) string {
	for i := range c.servers {
		if n := c.do(i, "ZCARD", key).(int64); n > most {
			return fmt.Sprintf("master %s keeps %d members", name(i), n)
		}
		if c.do(i, "PTTL", key) == int64(-1) {
			return "master " + name(i) + " keeps them for ever"
		}
	}
	return ""
}

func TestShared_HasNoneOfTheDefectsOfTwoKeys(t *testing.T) {
	t.Parallel()
	all := scenarios()
	if len(all) != 11 {
		t.Errorf("%d scenarios", len(all))
	}
	for _, s := range all {
		t.Run(strings.ReplaceAll(s.defect, " ", "-"), func(t *testing.T) {
			c := newCluster(t, 3, long)
			if s.theirs(t, twoKeys{c}) == "" {
				t.Error("the lock of two keys does not go wrong: this scenario proves nothing")
			}
			for _, s := range c.servers {
				s.FlushAll()
			}
			if wrong := s.ours(t, c); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}
