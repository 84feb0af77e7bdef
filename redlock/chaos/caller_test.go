package chaos

// caller_test.go: one client, like a program in production: it connects to some
// daemon, changes to another when that does not answer, and gives up.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

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
	db      int
	daemon  int // its index, since the last dial
	dialled time.Duration
	unsure  bool  // the last call was not decided
	pace    *pace // of all clients together; nil: each rests for as long as it likes
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
	c.daemon, c.dialled = slices.Index(c.stand.daemons, d), c.answers.now()
	var err error
	if c.conn, err = faulty.Dial(d.Addr(), callTimeout); err != nil {
		c.answers.fail(c.command(c.dialled, "dial"), err)
	} else if c.db != 0 {
		if _, err = c.conn.Do("SELECT", c.db); err != nil {
			c.leave()
		}
	}
	return err == nil
}

// command is one that is sent at this instant on the present connection.
func (c *caller) command(at time.Duration, words ...any) command {
	return command{client: c.number, daemon: c.daemon, dialled: c.dialled, sent: at, words: words}
}

// leave ends the connection; the next call goes to any daemon.
func (c *caller) leave() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask sends one command. An error means that the answer is unknown, unless it
// is a ReplyError.
func (c *caller) ask(words ...any) (any, error) {
	if !c.connect() {
		return nil, errors.New("no daemon there")
	}
	command := c.command(c.answers.now(), words...)
	reply, err := c.conn.Do(words...)
	if refused := faulty.ReplyError(""); err != nil && !errors.As(err, &refused) {
		c.leave()
	}
	c.answers.note(command, err)
	c.unsure = err != nil
	return reply, err
}

// rest is the client's own pause. A client that was not served comes back later.
func (c *caller) rest(ctx context.Context, most time.Duration) {
	switch {
	case c.unsure:
		most *= 4
	case c.pace != nil:
		c.pace.wait(ctx)
		return
	}
	pause(ctx, time.Duration(c.random.Int64N(int64(most)+1)))
}

// pace bounds how many pauses of clients end in a second, and with them the load.
type pace struct {
	limiter *rate.Limiter
	ended   atomic.Int64
}

func newPace(limit rate.Limit) *pace { return &pace{limiter: rate.NewLimiter(limit, 1)} }

func (p *pace) wait(ctx context.Context) {
	if p.limiter.Wait(ctx) == nil { // it fails when the load ends
		p.ended.Add(1)
	}
}

// command is what a client sent, and where to. Times are those of the history.
type command struct {
	client, daemon int
	dialled, sent  time.Duration
	words          []any
}

// answers counts the commands, and the replies that are no answer to them.
type answers struct {
	now    func() time.Duration
	failed func(command, error) // receives each command, or dial, that has no answer; nil: nothing does

	mu    sync.Mutex
	asked int
	codes map[string]int
	odd   []string
}

func newAnswers(now func() time.Duration) *answers {
	return &answers{now: now, codes: map[string]int{}}
}

// count is how many commands were sent.
func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func (a *answers) fail(c command, err error) {
	if a.failed != nil {
		a.failed(c, err)
	}
}

// undecided are the codes that a client must expect when masters and daemons
// fail; ERR, WRONGTYPE and all others are the fault of the daemon.
// LOSTSTATE is among them while faults last: a master that forgot and one that
// does not answer leave no majority that is sure of a counter. When all is
// healed the probe wants an id.
var undecided = []string{"NOQUORUM", "EXPIRED", "TRYLATER", "SHUTDOWN", "LOSTSTATE"}

func (a *answers) note(c command, err error) {
	if err != nil {
		a.fail(c, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if err == nil {
		return
	}
	words := c.words
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
