package faulty

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// program is a redis-server as any other program that serves on a port.
func program(t *testing.T) *Program {
	t.Helper()
	addr := FreeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	return StartProgram(t, addr, binary, os.Environ(), "--bind", "127.0.0.1", "--port", port, "--save", "")
}

func connect(t *testing.T, p *Program) *Conn {
	t.Helper()
	c, err := Dial(p.Addr(), maxWait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestProgram_IsAnotherProcessAtTheSameAddressAfterARestart(t *testing.T) {
	p := program(t)
	first := p.Pid()
	starts := func() int { return strings.Count(p.Output(), "Ready to accept connections") }
	wait := func(n int) { // it answers before its words are here
		if err := until(nil, func() bool { return starts() >= n }); err != nil {
			t.Errorf("start %d being told: %v", n, err)
		}
	}
	wait(1) // or they would die with it
	p.Kill()
	if p.Pid() != 0 {
		t.Errorf("after Kill its number is %d, want 0", p.Pid())
	}
	if _, err := Dial(p.Addr(), maxWait); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Kill: %v, want %v", err, syscall.ECONNREFUSED)
	}
	p.Restart()
	if p.Pid() == 0 || p.Pid() == first {
		t.Errorf("after Restart its number is %d, was %d", p.Pid(), first)
	}
	if reply, err := connect(t, p).Do("PING"); reply != "PONG" {
		t.Errorf("PING: %v, %v", reply, err)
	}
	wait(2)
	if n := starts(); n != 2 {
		t.Errorf("its output tells of %d starts, want 2", n)
	}
}

func TestProgram_IsAnotherProgramAtTheNextStartAfterReplace(t *testing.T) {
	p := program(t)
	databases := func() any {
		reply, err := connect(t, p).Do("CONFIG", "GET", "databases")
		pair, ok := reply.([]any)
		if err != nil || !ok || len(pair) != 2 {
			t.Fatalf("CONFIG GET databases: %v, %v", reply, err)
		}
		return pair[1]
	}
	p.Replace(p.binary, p.env, append(p.args, "--databases", "3")...)
	if n := databases(); n != "16" {
		t.Errorf("after Replace it has %v databases, want still 16", n)
	}
	p.Restart()
	if n := databases(); n != "3" {
		t.Errorf("after the next start it has %v databases, want 3", n)
	}
}

func TestProgram_AnswersWhatItWasAskedWhileStoppedWhenItContinues(t *testing.T) {
	p := program(t)
	c := connect(t, p)
	if reply, err := c.Do("SET", "k", "v"); reply != "OK" {
		t.Fatalf("SET: %v, %v", reply, err)
	}
	p.Stop()
	if !p.process.stopped() {
		t.Error("it runs on after Stop")
	}
	if err := c.Send("GET", "k"); err != nil {
		t.Fatal(err)
	}
	p.Cont()
	if reply, err := readReply(c.in); reply != "v" {
		t.Errorf("GET: %v, %v", reply, err)
	}
}

func TestProgram_EndsInItsOwnWayWhenItIsAsked(t *testing.T) {
	p := program(t)
	p.End(syscall.SIGTERM)
	if p.Pid() != 0 || !strings.Contains(p.Output(), "User requested shutdown") {
		t.Errorf("after SIGTERM its number is %d, and it printed:\n%s", p.Pid(), p.Output())
	}
	p.End(syscall.SIGTERM) // does nothing
}

func TestConn_TellsAnErrorReplyFromNoAnswer(t *testing.T) {
	p := program(t)
	c := connect(t, p)
	refused := ReplyError("")
	if _, err := c.Do("NONSENSE"); !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "ERR") {
		t.Errorf("NONSENSE: %v, want an error reply", err)
	}
	if reply, err := c.Do("PING"); reply != "PONG" {
		t.Errorf("after an error reply, PING: %v, %v", reply, err)
	}
	p.Kill()
	if _, err := c.Do("PING"); err == nil || errors.As(err, &refused) {
		t.Errorf("PING to a dead program: %v, want an error that is no reply", err)
	}
}
