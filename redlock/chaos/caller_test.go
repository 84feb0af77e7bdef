package chaos

// caller_test.go: one client, as a program in production is one: it talks to
// some daemon, goes to another when that does not answer, and gives up.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockd/pool/faulty"
)

// callPatience is how long a client waits for an answer: beyond every lease.
const callTimeout = 3 * time.Second

// caller is used by one goroutine.
type caller struct {
	number  int
	stand   *stand
	random  *rand.Rand
	answers *answers
	conn    *faulty.Conn // nil before it is dialled and after it broke
	pinned  *daemon      // nil: any
	unsure  bool         // the last call was not decided
}

// connect finds a daemon that accepts; false if the one it tried does not.
func (c *caller) connect() bool {
	if c.conn != nil {
		return true
	}
	d := c.pinned
	if d == nil {
		d = c.stand.daemons[c.random.IntN(len(c.stand.daemons))]
	}
	var err error
	c.conn, err = faulty.Dial(d.Addr(), callTimeout)
	return err == nil
}

// leave ends the connection; the next call goes to any daemon.
func (c *caller) leave() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask sends one command. An error means that the answer is not known, unless it
// is a ReplyError.
func (c *caller) ask(words ...any) (any, error) {
	if !c.connect() {
		return nil, errors.New("no daemon there")
	}
	reply, err := c.conn.Do(words...)
	if refused := faulty.ReplyError(""); err != nil && !errors.As(err, &refused) {
		c.leave()
	}
	c.answers.note(words, err)
	c.unsure = err != nil
	return reply, err
}

// rest is the client's own business. Who was not served comes back later.
func (c *caller) rest(ctx context.Context, most time.Duration) {
	if c.unsure {
		most *= 4
	}
	pause(ctx, time.Duration(c.random.Int64N(int64(most)+1)))
}

// answers counts what was asked, and what was no answer to the question.
type answers struct {
	mu    sync.Mutex
	asked int
	codes map[string]int
	odd   []string
}

// undecided are the codes that a client must expect when masters and daemons
// fail; ERR, WRONGTYPE and whatever else are nobody's fault but the daemon's.
// LOSTSTATE is among them while faults last: a master that forgot and one that
// does not answer leave no majority that is sure of a counter. When all is
// healed the probe wants an id.
var undecided = []string{"NOQUORUM", "EXPIRED", "TRYLATER", "SHUTDOWN", "LOSTSTATE"}

func (a *answers) note(words []any, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if err == nil {
		return
	}
	refused := faulty.ReplyError("")
	if !errors.As(err, &refused) {
		a.codes[fmt.Sprint(words[0], " no answer")]++
		return
	}
	code, _, _ := strings.Cut(string(refused), " ")
	a.codes[fmt.Sprint(words[0], " ", code)]++
	const shown = 20
	if !slices.Contains(undecided, code) && len(a.odd) < shown {
		a.odd = append(a.odd, fmt.Sprintf("%v: %s", words, refused))
	}
}
