// Unmodified lock libraries of Go, which use the daemon as one Redis. Argument: redsync,
// redislock, rueidislock or rueidislock-polling; or tests, and the program of rueidislock's own.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// lock is one lock that is held.
type lock struct {
	extend  func() error // nil: the library does that by itself
	release func() error // an error if it was not held any more
}

// library takes locks; nil, nil is its no.
type library struct {
	module string
	take   func(name string, ttl time.Duration) (*lock, error)
	close  func()
}

var background = context.Background()

func goRedis() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: os.Getenv("REDLOCKD_ADDR")})
}

func redsyncLibrary() library {
	client := goRedis()
	sync := redsync.New(goredis.NewPool(client))
	take := func(name string, ttl time.Duration) (*lock, error) {
		// Of 5 % of the lease, a busy machine leaves too little for an answer.
		mutex := sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1), redsync.WithTimeoutFactor(0.5))
		err := mutex.Lock()
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
			return nil, nil
		}
		return &lock{
			extend:  func() error { return must(mutex.Extend()) },
			release: func() error { return must(mutex.Unlock()) },
		}, err
	}
	return library{"github.com/go-redsync/redsync/v4", take, func() { client.Close() }}
}

// must makes an error of a library's no.
func must(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("no")
	}
	return err
}

func redislockLibrary() library {
	client := goRedis()
	locker := redislock.New(client)
	take := func(name string, ttl time.Duration) (*lock, error) {
		held, err := locker.Obtain(background, name, ttl, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return nil, nil
		}
		return &lock{
			extend: func() error {
				if err := held.Refresh(background, 25*time.Second, nil); err != nil {
					return err
				}
				left, err := held.TTL(background)
				if err == nil && (left <= 20*time.Second || left > 25*time.Second) {
					err = fmt.Errorf("%v left of 25 s", left)
				}
				return err
			},
			release: func() error { return held.Release(background) },
		}, err
	}
	return library{"github.com/bsm/redislock", take, func() { client.Close() }}
}

// rueidislockLibrary extends its keys by itself as long as the lock is held. Redlockd reports
// when one of them changes. Without that, three keys for one name are polled.
func rueidislockLibrary(polls bool) library {
	made, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{os.Getenv("REDLOCKD_ADDR")}, DisableCache: polls},
		KeyValidity:  20 * time.Second, ExtendInterval: 5 * time.Second, TryNextAfter: 5 * time.Second,
		KeyMajority: map[bool]int32{false: 1, true: 2}[polls], NoLoopTracking: true,
	})
	if err != nil {
		fail("connect", err)
	}
	take := func(name string, _ time.Duration) (*lock, error) {
		ctx, cancel, err := made.TryWithContext(background, name)
		if errors.Is(err, rueidislock.ErrNotLocked) {
			return nil, nil
		}
		return &lock{release: func() error {
			err := ctx.Err()
			cancel()
			return err
		}}, err
	}
	return library{"github.com/redis/rueidis", take, made.Close}
}

// ownTests runs the program of rueidislock's tests. Some of them fail if the machine takes half a
// second to renew a lease of a second: what has failed must pass by itself, with nothing beside it.
func ownTests(program string) {
	fmt.Println("library", version("github.com/redis/rueidis"))
	failed := runTests(program, ".")
	if len(failed) > 0 {
		fmt.Fprintln(os.Stderr, "run again by themselves:", failed)
		failed = runTests(program, "^("+strings.Join(failed, "|")+")$")
	}
	if len(failed) > 0 {
		fail("tests", fmt.Errorf("%q failed twice", failed))
	}
	fmt.Println("ok tests")
	t := teller{answers: bufio.NewScanner(os.Stdin)}
	if err := t.wait("gone"); err != nil {
		fail("close", err)
	}
	fmt.Println("ok close")
}

// runTests returns the tests of a program that failed.
func runTests(program, names string) (failed []string) {
	output, err := exec.Command(program, "-test.v", "-test.timeout=6m", "-test.run="+names).CombinedOutput()
	passed := strings.Count(string(output), "--- PASS")
	for line := range strings.Lines(string(output)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			failed = append(failed, strings.Fields(name)[0])
		}
	}
	cut := strings.Contains(string(output), "\npanic: ") // then the tests behind it did not run
	if cut || (err != nil || passed == 0) && len(failed) == 0 {
		fail("tests", fmt.Errorf("%d passed, and the program ended: %v: %.2000s", passed, err, output))
	}
	return failed
}

func main() {
	if os.Args[1] == "tests" {
		ownTests(os.Args[2])
		return
	}
	if os.Args[1] == "poll" {
		poll()
		return
	}
	made := map[string]func() library{
		"redsync": redsyncLibrary, "redislock": redislockLibrary,
		"rueidislock":         func() library { return rueidislockLibrary(false) },
		"rueidislock-polling": func() library { return rueidislockLibrary(true) },
	}[os.Args[1]]()
	fmt.Println("library", version(made.module))
	t := teller{library: made, key: os.Getenv("REDLOCKD_KEY"), answers: bufio.NewScanner(os.Stdin)}
	for _, step := range []struct {
		name string
		play func() error
	}{
		{"acquire", t.acquire}, {"contention", t.contention}, {"extend", t.extend}, {"release", t.release},
		{"expiry", t.expiry}, {"killed", t.killed}, {"close", t.close},
	} {
		if err := step.play(); err != nil {
			fail(step.name, err)
		}
		fmt.Println("ok", step.name)
	}
}

func fail(step string, err error) {
	fmt.Println("fail", step, strings.ReplaceAll(err.Error(), "\n", " "))
	os.Exit(1)
}

func version(module string) string {
	build, _ := debug.ReadBuildInfo()
	for _, m := range build.Deps {
		if m.Path == module {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}

// teller is one telling of the story.
type teller struct {
	library library
	key     string
	answers *bufio.Scanner
	held    *lock
}

// taken wants a lock, or that there is none.
func (t *teller) taken(name string, ttl time.Duration, wanted bool) (*lock, error) {
	held, err := t.library.take(t.key+":"+name, ttl)
	switch {
	case err != nil:
		return nil, err
	case (held != nil) != wanted:
		return nil, fmt.Errorf("%s: taken %v, wanted %v", name, held != nil, wanted)
	}
	return held, nil
}

func (t *teller) acquire() (err error) {
	t.held, err = t.taken("a", 20*time.Second, true)
	return err
}

func (t *teller) contention() error {
	_, err := t.taken("a", 20*time.Second, false)
	return err
}

func (t *teller) extend() error {
	if t.held.extend == nil {
		time.Sleep(6 * time.Second) // longer than the library's own interval
	} else if err := t.held.extend(); err != nil {
		return err
	}
	return t.contention()
}

func (t *teller) release() error {
	if err := t.held.release(); err != nil {
		return err
	}
	next, err := t.eventually("a")
	if err != nil {
		return err
	}
	return next.release()
}

// eventually takes a lock that is about to be free.
func (t *teller) eventually(name string) (held *lock, err error) {
	for end := time.Now().Add(30 * time.Second); held == nil && err == nil && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		held, err = t.library.take(t.key+":"+name, 20*time.Second)
	}
	if held == nil && err == nil {
		err = errors.New(name + ": somebody holds it for ever")
	}
	return held, err
}

// expiry: a library that renews by itself has nothing that expires.
func (t *teller) expiry() error {
	if t.held.extend == nil {
		return nil
	}
	late, err := t.taken("b", 1500*time.Millisecond, true)
	if err != nil {
		return err
	}
	next, err := t.eventually("b")
	if err != nil {
		return err
	}
	if late.release() == nil {
		return errors.New("what has expired could be released")
	}
	if _, err := t.taken("b", 20*time.Second, false); err != nil {
		return err
	}
	return next.release()
}

func (t *teller) killed() error {
	held, err := t.taken("c", 20*time.Second, true)
	if err != nil {
		return err
	}
	if err := t.wait("kill"); err != nil {
		return err
	}
	if _, err := t.taken("c", 20*time.Second, false); err != nil {
		return err
	}
	if held.extend != nil {
		if err := held.extend(); err != nil {
			return err
		}
	}
	if err := held.release(); err != nil {
		return err
	}
	if held, err = t.eventually("c"); err != nil {
		return err
	}
	return held.release()
}

func (t *teller) close() error {
	t.library.close()
	return t.wait("gone")
}

// wait has the driver do something.
func (t *teller) wait(what string) error {
	fmt.Println("wait", what)
	if !t.answers.Scan() || t.answers.Text() != what {
		return fmt.Errorf("the driver did not answer %s", what)
	}
	return nil
}
