// guard runs a command under a lock. The command must have ended when the lock is
// lost, not some time after.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Exit codes of a command that could not be run, as shells have them.
const (
	ExitNotExecutable = 126
	ExitNotFound      = 127
	exitSignal        = 128 // and the number of the signal
)

// guard runs one command. Its fields belong to watch's goroutine.
type guard struct {
	lease   *clientLease
	command *exec.Cmd
	log     io.Writer
	grace   time.Duration // from TERM to KILL
	warn    bool          // --on-lost=warn: the command goes on without its lock

	ended    chan int      // 1: the exit code
	started  chan error    // 1: nil, or why it did not start
	extended chan extended // 1: the answer to the one extension under way
	lost     bool
}

type extended struct {
	until time.Time
	lost  bool
	err   error
}

// run returns the command's exit code, after the lock has been given back.
func (g *guard) run(ctx context.Context) int {
	g.ended, g.started, g.extended = make(chan int, 1), make(chan error, 1), make(chan extended, 1)
	prepare(g.command)
	go g.execute()
	if err := <-g.started; err != nil {
		g.report("%v", err)
		g.giveBack()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return ExitNotFound
		}
		return ExitNotExecutable
	}
	code := g.watch(ctx)
	g.giveBack()
	return code
}

// execute stays on one thread: where the command ends with its parent, the parent
// is the thread that has started it.
func (g *guard) execute() {
	runtime.LockOSThread()
	err := g.command.Start()
	g.started <- err
	if err == nil {
		_ = g.command.Wait() // the state holds more
		g.ended <- exitCode(g.command)
	}
}

func exitCode(command *exec.Cmd) int {
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return command.ProcessState.ExitCode()
}

// watch extends the lock until the command has ended, and ends the command when
// the lock cannot be kept: TERM so early that it has --grace until the validity is
// over, KILL then.
func (g *guard) watch(ctx context.Context) int {
	extend, stopExtending := context.WithCancel(context.Background())
	defer stopExtending()
	renew := time.NewTimer(g.lease.ttl / 3)
	doubt := time.NewTimer(g.doubtful())
	kill := time.NewTimer(time.Hour)
	kill.Stop()
	extending, stop := false, ctx.Done()
	for {
		select {
		case code := <-g.ended:
			stopExtending()
			if extending {
				<-g.extended // the connection is needed for the release
			}
			return code
		case <-stop:
			stop = nil
			signal(g.command, syscall.SIGTERM) // it may take its time: the lock is kept
		case <-renew.C:
			extending = true
			go g.extend(extend)
		case e := <-g.extended:
			extending = false
			switch {
			case g.lost:
			case e.err != nil:
				g.report("the lock could not be extended, trying again: %v", e.err)
				renew.Reset(max(g.lease.ttl/20, minPause))
			case e.lost:
				doubt.Stop()
				g.onLost(kill, g.grace, "a quorum of masters does not hold the lock any more")
			default:
				g.lease.until = e.until
				renew.Reset(g.lease.ttl / 3)
				doubt.Reset(g.doubtful())
			}
		case <-doubt.C:
			g.onLost(kill, time.Until(g.lease.until), "the lock could not be extended in time")
		case <-kill.C:
			signal(g.command, syscall.SIGKILL)
		}
	}
}

// doubtful returns the time for which the lock may still go unextended.
func (g *guard) doubtful() time.Duration { return max(time.Until(g.lease.until)-g.grace, 0) }

func (g *guard) extend(ctx context.Context) {
	until, lost, err := g.lease.extend(ctx)
	g.extended <- extended{until, lost, err}
}

// onLost gives up the lock. It is lost for good: another client that held it in
// between is not aware of this command.
func (g *guard) onLost(kill *time.Timer, left time.Duration, why string) {
	g.lost = true
	if g.warn {
		g.report("LOST: %s; the command goes on without it", why)
		return
	}
	g.report("LOST: %s; the command is ended", why)
	signal(g.command, syscall.SIGTERM)
	kill.Reset(max(left, 0))
}

func (g *guard) giveBack() {
	released, err := g.lease.release()
	g.lease.daemons.close()
	switch {
	case err != nil:
		g.report("the lock could not be given back and ends by itself within %s: %v", g.lease.ttl, err)
	case !released && !g.lost:
		g.report("LOST: the lock was not held any more when the command had ended")
	}
}

func (g *guard) report(format string, args ...any) {
	fmt.Fprintf(g.log, "redlockd lock %s: "+format+"\n", append([]any{g.lease.key}, args...)...)
}
