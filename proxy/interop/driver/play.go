// One story of one program. The program prints a line for each step. In between the
// driver does what a program cannot do: it restarts the daemon, and checks from outside
// whether the connections of the program are closed.

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// steps that every program reports, in this order; a program may add its own.
var steps = []string{
	"connect", "ping", "password", "dlock", "taken", "dunlock", "dextend",
	"dnextid", "error", "pipeline", "reconnect", "close",
}

// longestProblem in bytes is kept of each, so that the first can be found.
const longestProblem = 2000

// outcome is what became of one run.
type outcome struct {
	run      run
	version  string   // as the library itself says
	protocol string   // as the daemon's CLIENT INFO said to the program
	passed   []string // steps
	skipped  []string // steps, with the reason
	problem  string   // empty if all is well
	took     time.Duration
}

func (o *outcome) line() string {
	state := "ok  "
	if o.problem != "" {
		state = "FAIL"
	}
	text := fmt.Sprintf("%s %-34s %-12s %-5s %2d steps %5.1fs", state, o.run.name(), o.version, spoken(o), len(o.passed), o.took.Seconds())
	if o.problem != "" {
		text += "\n     " + strings.ReplaceAll(o.problem, "\n", "\n     ")
	}
	return text
}

// spoken is the protocol, which lock libraries and examples do not tell.
func spoken(o *outcome) string {
	if o.run.locks || o.run.example {
		return ""
	}
	return "RESP" + o.protocol
}

// play gives the program a daemon of its own, and one that wants a password,
// and follows it to its end.
func play(ctx context.Context, o options, s *stand, r run, number int) (out outcome) {
	if r.locks || r.cluster {
		return playOwn(ctx, o, s, r, number)
	}
	if r.example {
		return playExample(ctx, o, s, r, number)
	}
	began := time.Now()
	out.run = r
	defer func() { out.took = time.Since(began) }()
	d, err := startDaemon(s, strconv.Itoa(number))
	if err != nil {
		out.problem = err.Error()
		return out
	}
	defer func() { d.process.terminate() }()
	if r.recorded != "" {
		out.replay(o, d)
	} else {
		out.guarded(ctx, o, s, d, number)
	}
	if complaints := d.complaints(); complaints != "" {
		out.fail("the daemon's log: %s", complaints)
	}
	return out
}

// guarded: every story has its own, because all come from one address, whose
// wrong passwords are counted.
func (out *outcome) guarded(ctx context.Context, o options, s *stand, d *daemon, number int) {
	environ := []string{
		"REDLOCKD_ADDR=" + d.address,
		"REDLOCKD_KEY=interop:" + strconv.Itoa(number), // begins the names of the story's locks
	}
	if s.passwords {
		guarded, err := startDaemon(s, strconv.Itoa(number)+"-guarded", "--requirepass", secret)
		if err != nil {
			out.fail("%v", err)
			return
		}
		defer guarded.process.terminate()
		environ = append(environ, "REDLOCKD_PASSWORD="+secret, "REDLOCKD_PASSWORD_ADDR="+guarded.address)
	}
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	out.follow(ctx, o, d, environ)
	out.judge(s.passwords)
}

func (out *outcome) fail(format string, values ...any) {
	if out.problem != "" {
		out.problem += "\n"
	}
	problem := fmt.Sprintf(format, values...)
	if len(problem) > longestProblem {
		problem = problem[:longestProblem] + "…"
	}
	out.problem += problem
}

// follow runs the program to its end.
func (out *outcome) follow(ctx context.Context, o options, d *daemon, environ []string) {
	cmd := commandOf(ctx, o, out.run)
	var complaints bytes.Buffer
	cmd.Env = append(append(withoutOptions(os.Environ()), cmd.Env...), environ...)
	cmd.Stderr, cmd.SysProcAttr = &complaints, ownGroup()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = startPatience // for what a killed program has started
	answers, err := cmd.StdinPipe()
	if err != nil {
		out.fail("%v", err)
		return
	}
	says, err := cmd.StdoutPipe()
	if err != nil {
		out.fail("%v", err)
		return
	}
	if err := cmd.Start(); err != nil {
		out.fail("%v", err)
		return
	}
	if out.run.example {
		out.readExample(says, d)
	} else {
		out.listen(says, answers, d)
	}
	answers.Close()           // a caller that still waits for an answer fails now
	io.Copy(io.Discard, says) // so that a failed program is not held up by its own words
	if err := cmd.Wait(); err != nil {
		out.fail("the program ended with %v", err)
	}
	if ctx.Err() != nil {
		out.fail("not done within %v", o.patience)
	}
	if out.problem != "" && complaints.Len() > 0 {
		out.fail("stderr: %s", lastLines(complaints.String(), 12))
	}
}

// listen reads the program's lines until it has no more or something failed.
func (out *outcome) listen(says io.Reader, answers io.Writer, d *daemon) {
	for lines := bufio.NewScanner(says); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "library":
			out.version = rest
		case "protocol":
			out.protocol = rest
		case "ok":
			out.passed = append(out.passed, rest)
		case "skip":
			out.skipped = append(out.skipped, rest)
		case "fail":
			out.fail("%.400s", rest)
		case "refused":
			out.refused(rest)
		case "wait":
			if err := serve(rest, d); err != nil {
				out.fail("%v", err)
				return
			}
			if _, err := fmt.Fprintln(answers, rest); err != nil {
				out.fail("%s: the program does not listen: %v", rest, err)
				return
			}
		default:
			out.fail("a line that is not of the protocol: %q", lines.Text())
			return
		}
	}
}

// refused compares what the library was told.
func (out *outcome) refused(text string) {
	if out.run.refusal == "" || !strings.HasPrefix(text, out.run.refusal) {
		out.fail("refused with %q, wanted %q", text, out.run.refusal)
		return
	}
	out.passed = append(out.passed, "refused")
}

// serve does what a program waits for.
func serve(what string, d *daemon) error {
	switch what {
	case "restart":
		return d.restart()
	case "end":
		if d.peer == nil {
			return fmt.Errorf("a program waits for the end of a daemon that is alone")
		}
		if n, err := d.peer.figure("locks", "locks_acquired"); err != nil || n < 2 { // one is from its start
			return fmt.Errorf("the library knows no other daemon than its first: the other has given %d locks, %v", n, err)
		}
		d.process.cmd.Process.Kill()
		<-d.process.exited
		d.ended = true
		return nil
	case "kill":
		if len(d.masters) == 0 {
			return fmt.Errorf("a program waits for the end of a master, which others need")
		}
		d.masters[0].cmd.Process.Kill()
		<-d.masters[0].exited
		return nil
	case "gone":
		if d.peer != nil {
			if err := serve(what, d.peer); err != nil || d.ended {
				return err
			}
		}
		return d.process.until("the program says that it has closed its connections", func() bool {
			n, err := d.clients()
			return err == nil && n == 0
		})
	}
	return fmt.Errorf("a program waits for %q; there are restart, end, kill and gone", what)
}

// judge finds what is missing: a program that says nothing has not passed.
func (out *outcome) judge(passwords bool) {
	if out.problem != "" {
		return
	}
	if out.version == "" && !out.run.example {
		out.fail("the program did not say which version it is")
	}
	if out.protocol != out.run.protocol { // lock libraries do not say
		out.fail("the connection speaks RESP%s, wanted RESP%s", out.protocol, out.run.protocol)
	}
	for _, step := range out.run.steps() {
		if !slices.Contains(out.passed, step) && !out.maySkip(step, passwords) {
			out.fail("no word of step %s", step)
		}
	}
}

// maySkip: the password is not asked of anybody while the daemon knows none.
func (out *outcome) maySkip(step string, passwords bool) bool {
	return step == "password" && !passwords && slices.ContainsFunc(out.skipped, func(s string) bool { return strings.HasPrefix(s, "password ") })
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
