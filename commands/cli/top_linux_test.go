// Tests of top on a pseudo terminal.

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"redlockd/pool/faulty"
)

// pseudoTerminal is a terminal of 80 x 24, and what was drawn on it.
type pseudoTerminal struct {
	*os.File          // top's side
	user     *os.File // the keyboard
	drawn    faulty.Log
	before   unix.Termios
}

func openPseudoTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals on this machine: %v", err)
	}
	p := &pseudoTerminal{user: user}
	var name string
	p.control(t, user, func(fd int) error {
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		name = fmt.Sprintf("/dev/pts/%d", n)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	})
	if p.File, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	p.resize(t, 80, 24)
	p.before = p.mode(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(&p.drawn, user) // ends with an error when the terminal is closed
	}()
	t.Cleanup(func() { p.File.Close(); user.Close(); <-ended })
	return p
}

func (p *pseudoTerminal) control(t *testing.T, file *os.File, f func(fd int) error) {
	t.Helper()
	conn, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

func (p *pseudoTerminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	p.control(t, p.user, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	})
}

func (p *pseudoTerminal) mode(t *testing.T) (mode unix.Termios) {
	t.Helper()
	p.control(t, p.user, func(fd int) error {
		now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			mode = *now
		}
		return err
	})
	return mode
}

// screen is what was drawn last.
func (p *pseudoTerminal) screen() string {
	all := p.drawn.String()
	return all[max(0, strings.LastIndex(all, "\x1b[H")):]
}

func (p *pseudoTerminal) awaits(t *testing.T, what string, arrived func(screen string) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !arrived(p.screen()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not come: %q", what, p.screen())
		}
	}
}

// watch runs top on a terminal; its error arrives when it has ended.
func watch(ctx context.Context, p *pseudoTerminal, s *script, environ ...string) <-chan error {
	ended := make(chan error, 1)
	a := App{Environ: append(environ, "LOCK_CONNECT="+s.Addr().String()), In: p.File, Out: p.File}
	go func() { ended <- a.Run(ctx, []string{"top"}) }()
	return ended
}

func outcome(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("top does not end")
		return nil
	}
}

// restored fails unless the terminal is as it was.
func (p *pseudoTerminal) restored(t *testing.T) {
	t.Helper()
	p.awaits(t, "the first screen", func(string) bool { return strings.HasSuffix(p.drawn.String(), leaveScreen) })
	if !strings.HasPrefix(p.drawn.String(), enterScreen) {
		t.Errorf("it begins with %.40q", p.drawn.String())
	}
	if now := p.mode(t); now != p.before {
		t.Errorf("the terminal has the mode %+v, before %+v", now, p.before)
	}
}

func TestTop_FollowsTheDaemonAndTheTerminal(t *testing.T) {
	t.Parallel()
	p, s := openPseudoTerminal(t), answering(t)
	ended := watch(t.Context(), p, s, "NO_COLOR=1")
	p.awaits(t, "the verdict", func(screen string) bool {
		return strings.Contains(screen, "All well: All 1 masters vote.") && strings.Contains(screen, "QUEUED")
	})
	if mode := p.mode(t); mode.Lflag&(unix.ECHO|unix.ICANON) != 0 {
		t.Error("keys are shown, or wait for the end of a line")
	}
	p.resize(t, 40, 10)
	p.awaits(t, "the narrow screen", func(screen string) bool {
		return strings.Contains(screen, "All 1 masters vote.") && !strings.Contains(screen, "QUEUED") && strings.Count(screen, "\n") <= 9
	})
	set := func(word, answer string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answers[word] = []string{answer}
	}
	set("INFO", "") // the connection is cut
	p.awaits(t, "the outage", func(screen string) bool {
		return strings.Contains(screen, "NOT CONNECTED: ") && strings.Contains(screen, "All 1 masters vote.")
	})
	set("INFO", infoReply("b", noon.UnixMicro(), 5))
	p.awaits(t, "the connection", func(screen string) bool {
		return !strings.Contains(screen, "NOT CONNECTED") && strings.Contains(screen, "All 1 masters vote.")
	})
	all := p.drawn.String()
	if strings.Contains(all, "\x1b[K") || strings.Count(all, "\x1b[J") != strings.Count(all, "\x1b[H\x1b[J") {
		t.Errorf("an erasure behind a full line takes its last character: %q", all)
	}
	if strings.Contains(all, "\x1b[3") {
		t.Error("NO_COLOR is set, and there are colours")
	}
	if _, err := p.user.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, ended); err != nil {
		t.Error(err)
	}
	p.restored(t)
}

func TestTop_RestoresTheTerminalHoweverItEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *pseudoTerminal, s *script, cancel func()){
		"Ctrl-C": func(p *pseudoTerminal, _ *script, _ func()) { _, _ = p.user.WriteString("\x03") }, // a failure shows below
		"signal": func(_ *pseudoTerminal, _ *script, cancel func()) { cancel() },
		"error": func(_ *pseudoTerminal, s *script, _ func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answers["INFO"], s.answers["SELECT"] = []string{""}, []string{"-NOAUTH log in\r\n"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := openPseudoTerminal(t), answering(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := watch(ctx, p, s)
			p.awaits(t, "the verdict", func(screen string) bool { return strings.Contains(screen, "\x1b[32mAll well") })
			end(p, s, cancel)
			if err := outcome(t, ended); (err != nil) != (name == "error") || err != nil && err.Error() != "top: NOAUTH log in" {
				t.Error(err)
			}
			p.restored(t)
		})
	}
}
