package chaos

// holder_test.go: a holder that is a process of its own, so that it can be
// killed without a word. The test binary is the process.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"redlockd/redlock/judge"
)

// holderWords are what such a process does: address, key, ttl and wait in ms.
const holderWords = "CHAOS_HOLDER"

// beHolder takes a lock with HOLD, says so, and lives until it is killed or its
// parent has gone.
func beHolder(words []string) {
	origin := time.Now()
	talk, err := dialTalk(words[0], func() time.Duration { return time.Since(origin) })
	if err != nil {
		fmt.Println("failed", err)
		return
	}
	wait, _ := strconv.Atoi(words[3])
	reply, err := talk.do(time.Duration(wait)*time.Millisecond+callTimeout, "DLOCK", words[1], words[2], "WAIT", words[3], "HOLD")
	grant, ok := reply.([]any)
	switch {
	case err != nil:
		fmt.Println("failed", err)
	case !ok:
		fmt.Println("refused")
	default:
		fmt.Println("granted", grant[0], grant[1], grant[2])
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// killed has a process hold the lock and kills it with SIGKILL.
func (h *holding) killed(ctx context.Context, c *client, w wants) {
	v := election{Client: c.number, Daemon: c.daemon, Key: w.keys[0], Waits: true, Outcome: judge.Unknown}
	calls := c.begin(judge.Acquire, &w, "")
	v.Invoke = h.record.Now()
	v.End = v.Invoke + w.wait
	cmd := exec.Command(os.Args[0])
	words := fmt.Sprint(c.stand.daemons[c.daemon].Addr(), " ", w.keys[0], " ", w.ttl.Milliseconds(), " ", w.wait.Milliseconds())
	cmd.Env = environment(holderWords + "=" + words)
	in, err := cmd.StdinPipe()
	if err != nil {
		h.run.t.Error(err)
		return
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.run.t.Error(err)
		return
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	v.Complete = h.record.Now()
	said := strings.Fields(line)
	l := &lease{wants: w}
	if len(said) == 4 && said[0] == "granted" {
		validity, _ := strconv.ParseInt(said[2], 10, 64)
		v.Fence, _ = strconv.ParseInt(said[3], 10, 64)
		l.token, l.until, v.Outcome = said[1], deadline(v.Invoke, validity), judge.OK
		calls[0].GrantedUntil(l.token, l.until, v.Fence)
		h.leaves(l, c.number, v.Complete) // it does not tell when its connection ends
	} else {
		calls[0].Unknown()
	}
	v.Until = v.Complete + w.ttl + maxTTL/10
	l.election = h.note(v)
	if l.token != "" {
		c.rest(ctx, w.ttl)
		calls = c.begin(judge.Release, &l.wants, l.token)
		h.gone(l, h.record.Now())
		h.tally("killed")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if l.token != "" {
		calls[0].Unknown()
		c.next(l)
	}
}
