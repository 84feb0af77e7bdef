package fleet

// riders_test.go: the clients that contend for the key.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	peer "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"redlockd/pool/faulty"
	"redlockd/redlock/checker"
)

// firstRider is the number of the first user of redis-py in the history.
const firstRider = 1000

// now is the machine's monotonic clock, which all processes share.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// told is a line of rider.py.
type told struct {
	Client           int
	Op               checker.OpKind
	Token            string
	Invoke, Complete time.Duration
	Until            time.Duration
	Outcome          checker.Outcome
	Released         bool
}

// ridePython returns the answers of the users of redis-py.
func (f *fleet) ridePython(span time.Duration) (h checker.History) {
	cmd := exec.Command(f.python, "-B", "rider.py", key, fmt.Sprint(riders), fmt.Sprint(span.Seconds()))
	cmd.Env = append(clean(), "REDLOCKD_ADDR="+f.daemons[0].Addr())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		f.t.Errorf("rider.py: %v\n%s", err, complaints.String())
	}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		var one told
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			f.t.Errorf("rider.py said %q: %v", lines.Text(), err)
			continue
		}
		e := checker.CallRecord{
			Client: firstRider + one.Client, Op: one.Op, Key: key, Token: one.Token,
			Invoke: one.Invoke, Complete: one.Complete, Outcome: one.Outcome, Released: one.Released,
		}
		if one.Until > 0 {
			e.Validity = one.Until - one.Complete
		}
		h = append(h, e)
	}
	return h
}

// askDaemons is a client of DLOCK.
func (f *fleet) askDaemons(user int) {
	book := f.record.Client()
	c, err := faulty.Dial(f.daemons[user%len(f.daemons)].Addr(), 10*time.Second)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer c.Close()
	for f.stop.Err() == nil {
		ttl := 100*time.Millisecond + rand.N(900*time.Millisecond).Truncate(time.Millisecond)
		began := now()
		call := book.Begin(checker.Acquire, key, "")
		reply, err := c.Do("DLOCK", key, ttl.Milliseconds())
		grant, granted := reply.([]any)
		switch {
		case f.failed(err):
			call.Unknown()
		case !granted:
			call.Refused()
		default:
			held := grant[0].(string)
			call.GrantedUntil(held, began+time.Duration(grant[1].(int64))*time.Millisecond, grant[2].(int64))
			f.lull(10 * time.Millisecond)
			f.extendAndRelease(c, book, held, ttl)
		}
		f.lull(20 * time.Millisecond)
	}
}

func (f *fleet) extendAndRelease(c *faulty.Conn, book *checker.ClientRecorder, held string, ttl time.Duration) {
	if rand.N(3) == 0 {
		began := now()
		call := book.Begin(checker.Extend, key, held)
		reply, err := c.Do("DEXTEND", key, held, ttl.Milliseconds())
		switch left, ok := reply.(int64); {
		case f.failed(err):
			call.Unknown()
		case !ok:
			call.Refused()
		default:
			call.GrantedUntil(held, began+time.Duration(left)*time.Millisecond, 0)
		}
	}
	if rand.N(20) == 0 {
		return // it never releases
	}
	call := book.Begin(checker.Release, key, held)
	reply, err := c.Do("DUNLOCK", key, held)
	if f.failed(err) {
		call.Unknown()
	} else {
		call.Released(reply == int64(1))
	}
}

// failed checks an error: only masters out of reach may leave a call undecided.
func (f *fleet) failed(err error) bool {
	var refused faulty.ReplyError
	if err == nil {
		return false
	}
	code := ""
	if errors.As(err, &refused) {
		code, _, _ = strings.Cut(string(refused), " ")
	}
	if code != "NOQUORUM" && code != "EXPIRED" && code != "TRYLATER" {
		f.t.Errorf("no fault explains this answer: %v", err)
	}
	return true
}

// silent suppresses the log of the library, which has a line for every master out of reach.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// askMasters is a program with redsync that uses the masters directly.
func (f *fleet) askMasters(user int) {
	book := f.record.Client()
	var pools []peer.Pool
	for _, m := range f.masters {
		client := redis.NewClient(&redis.Options{
			Addr: m.Addr(), MaxRetries: -1, DialerRetries: 1, DialTimeout: 100 * time.Millisecond, ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
		})
		defer client.Close()
		pools = append(pools, goredis.NewPool(client))
	}
	locks := redsync.New(pools...)
	for serial := 0; f.stop.Err() == nil; serial++ {
		ttl := 200*time.Millisecond + rand.N(800*time.Millisecond)
		value := token("redsync", user, serial)
		mutex := locks.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1), redsync.WithTimeoutFactor(0.2),
			redsync.WithGenValueFunc(func() (string, error) { return value, nil }))
		call := book.Begin(checker.Acquire, key, value)
		if mutex.Lock() != nil {
			call.Refused()
			f.lull(20 * time.Millisecond)
			continue
		}
		call.GrantedUntil(value, now()+time.Until(mutex.Until()), 0)
		f.lull(10 * time.Millisecond)
		if rand.N(3) == 0 {
			call := book.Begin(checker.Extend, key, value)
			if ok, err := mutex.Extend(); ok && err == nil {
				call.GrantedUntil(value, now()+time.Until(mutex.Until()), 0)
			} else {
				call.Unknown()
			}
		}
		call = book.Begin(checker.Release, key, value)
		_, _ = mutex.UnlockContext(context.Background())
		call.Unknown() // the library does not report the outcome of a release reliably
		f.lull(20 * time.Millisecond)
	}
}
