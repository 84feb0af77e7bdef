// Redisson's RLock, RFencedLock and RSpinLock. Redisson keeps a lock in a hash, owner → count.
// Counts of several masters do not add up to one, so none of its scripts is sent to them. The
// owner takes levels of a reentrant lock instead (package lease), and a count is how many there
// are. What wakes its waiters is in conn/librarychannels.go.

package rediscompat

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

const redissonLibrary = "Redisson"

// redissonScript is one script of Redisson: what a call of it does.
type redissonScript struct {
	does       string
	keys, args int // per lock, if it is for several
	several    bool
	serve      func(*evaluation) error
	advice     string // of a script that is not served
}

// redissonScripts has the scripts of Redisson 3.52 and 4.7 by their SHA1.
var redissonScripts = withAdvice(map[string]*redissonScript{
	"149c5a8bf18676fd99e9e6e24923bd64d9b62f94": {does: "acquire", keys: 1, args: 2, serve: (*evaluation).enterRedisson},
	"dad0f8d619e548e04f21fb48d50be5034df3adae": {does: "acquire", keys: 1, args: 2, serve: (*evaluation).enterRedisson},
	"46b5551ba403d6152a7a6eca122e08728d6c8c66": {does: "acquire", keys: 2, args: 2, serve: (*evaluation).enterRedisson},
	"49babb5a1e6a0c5f188c2ae62b93b51cdfd63e45": {does: "acquire", keys: 2, args: 2, serve: (*evaluation).enterFenced},
	"6866459238a13a701d42f4971f12d9f3a50e2442": {does: "release", keys: 3, args: 5, serve: leaveRedisson(3)},
	"73ac2729af29ea9a975f95e8097f7ee9a74cce3d": {does: "release", keys: 2, args: 3, serve: leaveRedisson(2)},
	"6a3d31570dc6f4b0bd32bcdc8e75667747c6f635": {does: "extend", several: true, serve: (*evaluation).renewRedisson},
	"3fd750e0b43af99dbd223e5523718f18cded3664": {does: "extend", keys: 1, args: 2, serve: (*evaluation).expireRedisson},
	"605e338249a7a1d40df83b04f7658354f883b41b": {does: "discard", keys: 2, args: 2, serve: (*evaluation).forceRedisson},
	"3daa7be6cf69d9309ad990442e83bf25094f9b22": {does: "acquire", keys: 1, args: 3, serve: (*evaluation).enterOnce},
	"51b433c3cc9a6ca991b3aefec63d23490c246318": {does: "discard", keys: 1, serve: (*evaluation).forceRedisson},
})

// redissonAdvice has the scripts of Redisson's other kinds of locks, which are not served, by what to use instead. All
// of a kind are here: one that is served alone would leave its lock behind.
var redissonAdvice = map[string][]string{
	"RFairLock keeps a queue in a list: use DLOCK key ttl FAIR WAIT ms": {
		"46724422f148047badd768b1b1a3d750d86bded2",
		"5bea9498faee85066db11f2f8bf80fccbf222eaf",
		"71ed11d4e4818119ac560b3d670a7f08256afc46",
		"8f6ed299ffd259f0539c20f89253998c0777ea75",
		"d1ddef65ad80886b5d36e023c99930044ddd653a",
		"d20501c26a30adf6fb0fe9883bbbcc497e6157e2",
		"dc8c2a61263a478742a45ae53bd41ba1e901d83f",
	},
	"RFasterMultiLock keeps its locks in fields of one hash: use DMLOCK, or DLOCK for each": {
		"25ede9b3422ba7c8d75cc43d73a4d90331598aa0",
		"5088a04fb08aa002f465f0f90b35ed8da9b27a3c",
		"6f6c8d62862d8d76ea41fc769938285c3aca3005",
		"9257cb738f97e7d30f8316fb6c7a25920264005a",
		"b9e070cb84c0ed3944b58dcb4ddf45af7adeb9c8",
		"eba4f75b2998ef1ead8e55019d89d93d85dadf60",
	},
	"RReadWriteLock counts readers in a hash: use DLOCK key ttl SHARED": {
		"0e0d43be494b850ddca0571693de237177df9aa0",
		"1cef67258f4b6d836929761da483dcf865308dde",
		"8c9c73e16f4152c743fe51cc7bead4d1c806fc25",
		"95553a6ff11176c18e71344e89d116b06fd6f753",
	},
	"RReadWriteLock counts readers in a hash: use DLOCK key ttl, and SHARED for readers": {
		"21f5fb0f8ddfa9be5c3e0c9757c128796add75c6",
		"6306ba3bf1f563b284bed52d305fce615c6664d9",
		"9a8b4ade7c1bf4b0179d55e27adb5e1544d5168b",
	},
	"semaphores are counters, some with a sorted set: use DLOCK key ttl LIMIT n": {
		"2298b02cc67a89f2a638e47503db3675c73d77f5",
		"241ce4e87e652b4f9b39d33cbcd7df9ee8ed906c",
		"259ded7c2f0d0116ac025367cf13446a12f01254",
		"26b3972b2c9e617556282f404cb79709d746a713",
		"38bf99884eb94708a40a9aabacb15b4c5f16e804",
		"494d8561fee0cdb033f6c28d74c052c52189a578",
		"4ce079451bee2993ce00c8a4e205b536c6ccad67",
		"6f0b0be79a0c146c778cb14f40c10eb5b706e574",
		"7e067fc4780eaf458446fdc8fa2ad7811ca949f1",
		"8be95cb5221cc7ee883cacb8859a8b32ef501a0e",
		"98c4139e03084f303a3ecca4f0ab4954391fa5e5",
		"992c96b09a3d8ea0b37f5dc12e5347a44d93909d",
		"c7dc9d189c1715465a31a06ddbc008585e0c20be",
		"c87766d572855e9461c4ecd453db5d1cbab6119e",
		"cf3ab77b1c0ae1226ae0e06e5cb18ee75f56c96b",
		"d404aba30301167784efa4539108cd4cc9b948c4",
		"e242db5c1c68811b0d26a41937dcf22415b6d872",
		"ec6fb1cd5f66817424e8fe70fee7929391b7c6f0",
	},
	"RCountDownLatch is a counter, not a lock: keep it on a Redis, or let each part hold DLOCK key ttl SHARED and the waiter take DLOCK key ttl WAIT ms": {
		"2a52d54a6f35bc8af5e84a2930b2ca1aa2a15892",
		"38060fab26b0e7c5982a5cfd7ad542e44d3da19b",
		"47aed1b8133417c9bc009ffc08602e37ed4a1bb3",
	},
}

// withAdvice adds the scripts that are not served.
func withAdvice(scripts map[string]*redissonScript) map[string]*redissonScript {
	for advice, all := range redissonAdvice {
		for _, sha := range all {
			scripts[sha] = &redissonScript{advice: advice}
		}
	}
	return scripts
}

// serveRedisson starts the operation. Of the keys, only the locks are any user's business: the
// channel, the latch and the fence beside them are never touched.
func (e *evaluation) serveRedisson(s *redissonScript) error {
	locks := e.keys
	switch {
	case s.advice != "":
		return e.refuse("%s", "Redisson's "+s.advice)
	case s.several && (len(e.keys) == 0 || len(e.given.Args) != 1+len(e.keys)),
		!s.several && (len(e.keys) != s.keys || len(e.given.Args) != s.args):
		return e.refuse("it is known with other keys and arguments")
	case e.reads:
		return commands.RedisText("Write commands are not allowed from read-only scripts.")
	case !s.several:
		locks = locks[:1]
	}
	if !e.call.MayUseAll(locks...) {
		return nil
	}
	e.watch.Count(e.handlers.deps.DropinStats, redissonLibrary, s.does)
	return s.serve(e)
}

// owner is the argument that is the owner, uuid:threadId.
func (e *evaluation) owner(at int) (redlock.Lease, error) {
	owner := e.given.Args[at]
	if len(owner) < 8 || len(owner) > arg.MaxTokenBytes/2 {
		return redlock.Lease{}, e.refuse("its owner has %d bytes, allowed are 8 to %d", len(owner), arg.MaxTokenBytes/2)
	}
	return redlock.Lease{DB: e.db, Key: e.keys[0], Token: redlock.Token(owner)}, nil
}

func (e *evaluation) redissonLease() (time.Duration, error) {
	ms, ok := arg.ParseInteger(e.given.Args[0])
	if !ok {
		return 0, commands.RedisText("value is not an integer or out of range")
	}
	return e.handlers.lease(ms)
}

// enterRedisson replies nil to the owner of a new level, to others how long to sleep at most.
func (e *evaluation) enterRedisson() error {
	return e.enter(func(redlock.Fence) commands.Reply { return commands.Nil }, commands.Int)
}

// enterFenced replies [-1, fence] to the owner, to others [how long to sleep, -1].
func (e *evaluation) enterFenced() error {
	return e.enter(
		func(f redlock.Fence) commands.Reply { return commands.Array(commands.Int(-1), commands.Int(int64(f))) },
		func(ms int64) commands.Reply { return commands.Array(commands.Int(ms), commands.Int(-1)) })
}

func (e *evaluation) enter(yes func(redlock.Fence) commands.Reply, no func(ms int64) commands.Reply) error {
	h, c := e.handlers, e.call
	at, err := e.owner(1)
	if err != nil {
		return err
	}
	ttl, err := e.redissonLease()
	if err != nil {
		return err
	}
	request := redlock.LockRequest{DB: at.DB, Key: at.Key, TTL: ttl, Mode: redlock.LevelsOf(at.Token), Requester: c.Client.Identity()}
	a := h.pending(e.watch)
	a.yes = func() commands.Reply { return yes(a.Granted.Fence) }
	if !a.reserve(h, c, &request) {
		return nil
	}
	h.deps.Locks.Lock(c.Batch, request, func(grant redlock.Grant, err error) {
		if !errors.Is(err, redlock.ErrHeld) {
			a.decided(grant, err)
			return
		}
		h.deps.RedisCompat.View(nil, at.DB, at.Key, func(v redlock.View, failed error) {
			a.no = func() commands.Reply { return no(redissonSleep(v)) }
			a.decided(grant, cmp.Or(failed, err))
		})
	})
	return nil
}

// enterOnce is the acquire of a lock that its owner may not take again: the error is then the argument that
// the library gives for it. The owner is one thread, so nothing takes a level between the look and the acquire.
func (e *evaluation) enterOnce() error {
	at, err := e.owner(1)
	if err != nil {
		return err
	}
	if _, err := e.redissonLease(); err != nil {
		return err
	}
	e.handlers.deps.Inspect.ReadLock(at.DB, at.Key, func(v redlock.LockView, err error) {
		_, count, undecided := v.Levels(at.Token)
		if err = cmp.Or(err, undecided); err == nil && count == 0 {
			e.call.Batch = nil // it has been sent
			if err = e.enterRedisson(); err == nil {
				return
			}
		}
		e.watch.Stop(false, err)
		if err != nil {
			e.call.Reply(commands.Failure(err))
		} else {
			e.call.Reply(commands.Error("ERR", e.given.Args[2]))
		}
	})
	return nil
}

// leaveRedisson releases a level and replies 1 if it was the last one, 0 if others are left, nil if
// the owner, the argument of that number, has none.
func leaveRedisson(owner int) func(*evaluation) error {
	return func(e *evaluation) error {
		at, err := e.owner(owner - 1)
		if err != nil {
			return err
		}
		e.handlers.deps.LeaveLevel(e.call.Client, at, func(left int64, err error) {
			if errors.Is(err, redlock.ErrNotHeld) {
				e.watch.Stop(false, nil)
				e.call.Reply(commands.Nil)
				return
			}
			e.watch.Stop(true, err)
			e.call.Reply(commands.Either(left == 0, err, commands.Int(1), commands.Int(0)))
		})
		return nil
	}
}

// renewRedisson is the watchdog: it prolongs all levels, and replies for each lock 1 if its owner
// has any.
func (e *evaluation) renewRedisson() error {
	ttl, err := e.redissonLease()
	if err != nil {
		return err
	}
	each := commands.Gather(len(e.keys), func(held []bool, errs []error) {
		err := cmp.Or(errs...)
		e.watch.Stop(!slices.Contains(held, false), err)
		if err != nil {
			e.call.Reply(commands.Failure(err))
			return
		}
		replies := make([]commands.Reply, len(held))
		for i, is := range held {
			replies[i] = commands.Bool(is)
		}
		e.call.Reply(commands.Array(replies...))
	})
	for i, key := range e.keys {
		if e.given.Args[1+i] == "" { // no thread is that owner, and to extendLevels it is any
			each(i)(false, nil)
			continue
		}
		e.handlers.extendLevels(e.call, redlock.Lease{DB: e.db, Key: key, Token: redlock.Token(e.given.Args[1+i])}, ttl, each(i))
	}
	return nil
}

// extendLevels prolongs all levels of an owner, "" for whichever it is; held is false if there are
// none.
func (h *handlers) extendLevels(c *commands.Call, at redlock.Lease, ttl time.Duration, done func(held bool, err error)) {
	h.deps.Inspect.ReadLock(at.DB, at.Key, func(v redlock.LockView, err error) {
		owner := at.Token
		if owner == "" && len(v.Holders) > 0 {
			owner = redlock.OwnerOf(v.Holders[0].Token)
		}
		levels, _, undecided := v.Levels(owner)
		if err != nil || len(levels) == 0 {
			done(false, cmp.Or(err, undecided))
			return
		}
		each := commands.Gather(len(levels), func(held []bool, errs []error) { done(slices.Contains(held, true), cmp.Or(errs...)) })
		for i := range levels {
			token, answer := levels[i].Token, each(i)
			request := redlock.ExtendRequest{DB: at.DB, Key: at.Key, Token: token, TTL: ttl, Longest: h.deps.Longest(c, 0), Whole: true}
			h.deps.Locks.Extend(nil, request, func(g redlock.Grant, err error) {
				switch {
				case err == nil:
					h.deps.Users.ProlongedKey(at.DB, at.Key, token, g.Validity())
				case errors.Is(err, redlock.ErrNotHeld):
					answer(false, nil)
					return
				}
				answer(err == nil, err)
			})
		}
	})
}

// expireRedisson is expire, which a RedissonMultiLock with a lease sends for each lock that it has
// taken: 1, or 0 if the lock is free. It names no owner, and never shortens a lease.
func (e *evaluation) expireRedisson() error {
	if mode := e.given.Args[1]; mode != "" {
		return e.refuse("it expires a lock with the condition '%s'", commands.Clip(mode, commands.ShownBytes))
	}
	ttl, err := e.redissonLease()
	if err != nil || !mayForce(e.call) {
		return err
	}
	reply := commands.Answer(e.call, commands.Bool)
	e.handlers.extendLevels(e.call, redlock.Lease{DB: e.db, Key: e.keys[0]}, ttl, func(held bool, err error) {
		e.watch.Stop(held, err)
		reply(held, err)
	})
	return nil
}

// forceRedisson is forceUnlock.
func (e *evaluation) forceRedisson() error {
	if !mayForce(e.call) {
		return nil
	}
	reply := commands.Answer(e.call, commands.Bool)
	e.handlers.deps.Force(e.call, e.keys[0], func(was bool, err error) {
		e.watch.Stop(was, err)
		reply(was, err)
	})
	return nil
}

// levels is the handler of HEXISTS and HGET: how many levels the field, an owner, has at the key.
func (h *handlers) levels(show func(count int) commands.Reply) commands.Handler {
	return func(c *commands.Call) error {
		key, err := arg.ParseKey(c.Args[1])
		if err != nil {
			return err
		}
		h.deps.Inspect.ReadLock(c.Client.DB, key, func(v redlock.LockView, err error) {
			_, count, undecided := v.Levels(redlock.Token(c.Args[2]))
			if err = cmp.Or(err, undecided); err != nil {
				c.Reply(commands.Failure(err))
				return
			}
			c.Reply(show(count))
		})
		return nil
	}
}

const (
	// redissonLatch begins the names of keys in which Redisson keeps the answer to an unlock that
	// waits for replicas. There are none, and so no such key.
	redissonLatch = "redisson_unlock_latch:"
	// redissonToken before the name of an RFencedLock names its fence.
	redissonToken = "redisson_lock_token:"
	// minRedissonWait and maxRedissonWait bound how long Redisson sleeps if no message wakes it:
	// the message of another daemon may be lost.
	minRedissonWait = 10 * time.Millisecond
	maxRedissonWait = 2 * time.Second
)

// redissonSleep returns the milliseconds for which Redisson sleeps at most until a message comes.
func redissonSleep(v redlock.View) int64 {
	if v.Left >= redlock.Endless {
		return maxRedissonWait.Milliseconds()
	}
	return min(max(v.Left, minRedissonWait), maxRedissonWait).Milliseconds()
}

func hasLevel(count int) commands.Reply { return commands.Bool(count > 0) }

func levelCount(count int) commands.Reply {
	if count == 0 {
		return commands.Nil
	}
	return commands.Bulk(strconv.Itoa(count))
}

// fencedName is the RFencedLock whose fence has this name: redisson_lock_token:{name}, without the
// braces if the name has its own.
func fencedName(key string) (name string, is bool) {
	name, is = strings.CutPrefix(key, redissonToken)
	if inner, ok := strings.CutPrefix(name, "{"); ok && strings.HasSuffix(inner, "}") {
		name = strings.TrimSuffix(inner, "}")
	}
	return name, is
}
