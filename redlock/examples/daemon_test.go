// Package examples shows how a resource uses the fence. Each example lets a
// holder sleep through its lease, as a process that is paused does, lets somebody
// else take the lock and write, and then lets the sleeper write: the lock cannot
// stop it any more, the resource must. They run against a daemon of their own.
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

// lock takes a lock for ttl milliseconds, waits for it if it must, and returns
// the fence to be shown to the resource with every write.
func lock(who rueidis.Client, key string, ttl int) (fence int64) {
	reply, err := who.Do(context.Background(), who.B().Arbitrary("DLOCK").Keys(key).
		Args(fmt.Sprint(ttl), "WAIT", "20000").Blocking()).ToArray()
	must(err)
	fence, err = reply[2].AsInt64() // token, validity, fence
	must(err)
	return fence
}
