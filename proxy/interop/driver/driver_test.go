package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// told is what becomes of a program that is a shell script.
func told(t *testing.T, script string, passwords bool, environ ...string) outcome {
	t.Helper()
	out := outcome{run: run{library: "x", protocol: "3", command: []string{"sh", "-c", script}}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out.follow(ctx, options{patience: time.Minute}, &daemon{}, environ)
	out.judge(passwords)
	return out
}

const whole = `echo library 1.2.3; echo protocol 3; echo skip password the daemon has none
for s in connect ping dlock taken dunlock dextend dnextid error pipeline reconnect close; do echo ok $s; done; `

func TestStory_PassesWhenEveryStepIsReported(t *testing.T) {
	out := told(t, whole, false)
	if out.problem != "" || out.version != "1.2.3" || len(out.passed) != len(steps)-1 {
		t.Errorf("%+v", out)
	}
}

func TestStory_FailsForWhateverIsMissing(t *testing.T) {
	for _, c := range []struct{ name, script, problem string }{
		{"a step", strings.Replace(whole, "taken ", "", 1), "no word of step taken"},
		{"the version", strings.Replace(whole, "echo library 1.2.3;", "", 1), "which version"},
		{"the protocol", strings.Replace(whole, "protocol 3", "protocol 2", 1), "RESP2, wanted RESP3"},
		{"its exit status", whole + "exit 3", "exit status 3"},
		{"the story's words", whole + "echo hello", "not of the protocol"},
		{"success", "echo library 1.2.3; echo fail dlock nobody knows; exit 1", "dlock nobody knows"},
		{"something the driver can do", "echo wait rain", `waits for "rain"`},
		{"the program", "exec /nonexistent/program", "exit status 127"},
	} {
		if out := told(t, c.script, false); !strings.Contains(out.problem, c.problem) {
			t.Errorf("without %s: problem %q, wanted %q", c.name, out.problem, c.problem)
		}
	}
}

func TestStory_MayNotSkipThePasswordWhereThereIsOne(t *testing.T) {
	if out := told(t, whole, true); !strings.Contains(out.problem, "no word of step password") {
		t.Errorf("problem %q", out.problem)
	}
}

func TestStory_IsEndedWithAllItHasStartedWhenItsTimeIsUp(t *testing.T) {
	out := outcome{run: run{command: []string{"sh", "-c", "sleep 600 & sleep 600"}}}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	out.follow(ctx, options{patience: 50 * time.Millisecond}, &daemon{}, nil) // would last until both let go of the output
	if !strings.Contains(out.problem, "not done within 50ms") {
		t.Errorf("problem %q", out.problem)
	}
}

func TestStory_HidesTheDaemonsOptionsFromProgramsAndServers(t *testing.T) {
	t.Setenv("REDLOCKD_MASTERS", "someone's")
	out := told(t, `[ -z "$REDLOCKD_MASTERS" ] && [ "$REDLOCKD_ADDR" = here ] || exit 9; `+whole, false, "REDLOCKD_ADDR=here")
	if out.problem != "" {
		t.Errorf("problem %q", out.problem)
	}
}

// answering plays a server with fixed replies; it gives what was sent.
func answering(t *testing.T, replies string) (player, chan string) {
	t.Helper()
	client, server := net.Pipe()
	sent := make(chan string, 1) // the one command of the test
	go func() {
		defer server.Close()
		line, _ := bufio.NewReader(server).ReadString('\n')
		sent <- line
		fmt.Fprint(server, replies)
	}()
	t.Cleanup(func() { client.Close() })
	return player{conn: client, replies: bufio.NewReader(client)}, sent
}

func TestPlayer_KeepsTheTokenAndSendsIt(t *testing.T) {
	const token = "abcdefghijklmnopqrstuvwxy-_"
	p, sent := answering(t, "*3\r\n$27\r\n"+token+"\r\n:29697\r\n:1795200558272421\r\n")
	if err := p.play(exchange{send: "DLOCK\n"}); err != nil {
		t.Fatal(err)
	}
	<-sent
	if err := p.play(exchange{expect: "*3\r\n$27\r\n{token}\r\n:{int}\r\n:{int}\r\n"}); err != nil || p.token != token {
		t.Errorf("token %q, %v", p.token, err)
	}
}

func TestPlayer_RefusesAnyOtherReply(t *testing.T) {
	for _, c := range []struct{ reply, wanted string }{
		{"$-1\r\n", "_\r\n"},
		{":x\r\n", ":{int}\r\n"},
		{"", "+OK\r\n"},
	} {
		p, sent := answering(t, c.reply)
		if err := p.play(exchange{send: "PING\n"}); err != nil {
			t.Fatal(err)
		}
		<-sent
		if err := p.play(exchange{expect: c.wanted}); err == nil {
			t.Errorf("%q passes for %q", c.reply, c.wanted)
		}
	}
}

func TestTranscripts_CanAllBeRead(t *testing.T) {
	for _, r := range recordedRuns() {
		version, exchanges, err := readTranscript(filepath.Join("..", "recorded", r.recorded))
		if err != nil || version == "" || len(exchanges) < 20 {
			t.Errorf("%s: version %q, %d exchanges, %v", r.recorded, version, len(exchanges), err)
		}
	}
}

func TestTranscript_NamesTheLineItCannotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	for text, problem := range map[string]string{"\nstepp x\n": "x.txt:2", "> no quotes\n": "x.txt:1"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readTranscript(path); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTable_NamesWhatWasNotPassed(t *testing.T) {
	out := outcome{run: run{library: "lib", as: "default"}, version: "1", protocol: "2", passed: []string{"connect"}, problem: "a|b\nc"}
	got := table([]outcome{out}, "stand")
	for _, wanted := range []string{"| lib | 1 | default | RESP2 | 1 of 12, not: ping, password,", `**failed**: a\|b |`} {
		if !strings.Contains(got, wanted) {
			t.Errorf("no %q in\n%s", wanted, got)
		}
	}
}

func TestRuns_HaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range runs() {
		if seen[r.name()] {
			t.Errorf("two runs are called %s", r.name())
		}
		seen[r.name()] = true
		if (r.recorded == "") == (len(r.command) == 0) {
			t.Errorf("%s has neither a program nor a transcript, or both", r.name())
		}
	}
}
