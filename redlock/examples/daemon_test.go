// Package examples shows how a resource uses the fence. In each example a holder sleeps
// through its lease, as a paused process does. Another client takes the lock and writes,
// and then the sleeper writes. The lock cannot stop the sleeper any more; the resource
// must. The examples run against a daemon of their own.
package examples

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// sleeper and other are two processes, each with a Redis client of its own; any
// client library will do.
var sleeper, other rueidis.Client

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the daemon and serves the examples with it, on masters inside its
// process.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fence")
	must(err)
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "redlockd")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Stderr = filepath.Join("..", ".."), os.Stderr
	must(build.Run())
	daemon := exec.Command(program, "--listen", "127.0.0.1:0", "--log-level", "error")
	daemon.Stderr = os.Stderr
	out, err := daemon.StdoutPipe()
	must(err)
	must(daemon.Start())
	defer func() { _ = daemon.Wait() }() // it was killed
	defer func() { _ = daemon.Process.Kill() }()
	banner, err := bufio.NewReader(out).ReadString('\n')
	must(err)
	address := strings.TrimSpace(strings.TrimPrefix(banner, "redlockd listens on "))
	for _, client := range []*rueidis.Client{&sleeper, &other} {
		*client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
		must(err)
		defer (*client).Close()
	}
	return m.Run()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// lock takes a lock for ttl milliseconds, waits for it if necessary, and returns the
// fence that accompanies every write to the resource.
func lock(who rueidis.Client, key string, ttl int) (fence int64) {
	for {
		reply, err := who.Do(context.Background(), who.B().Arbitrary("DLOCK").Keys(key).
			Args(fmt.Sprint(ttl), "WAIT", "20000").Blocking()).ToArray()
		must(err)
		token, err := reply[0].ToString() // token, validity, fence
		must(err)
		fence, err = reply[2].AsInt64()
		must(err)
		if confirm(who, key, token, ttl) {
			return fence
		}
	}
}

// confirm follows every WAIT: the grant may have been on its way for longer than its
// validity. The holder stops when this validity is over, counted from before the DEXTEND
// was sent; nil means that the lock is lost already.
func confirm(who rueidis.Client, key, token string, ttl int) bool {
	sent := time.Now()
	validity, err := who.Do(context.Background(), who.B().Arbitrary("DEXTEND").Keys(key).Args(token, fmt.Sprint(ttl)).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return false
	}
	must(err)
	return time.Now().Before(sent.Add(time.Duration(validity) * time.Millisecond))
}
