package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
	for _, r := range append(recordedRuns(), recordedLocks()...) {
		told, err := readTranscript(filepath.Join("..", "recorded", r.recorded))
		if err != nil {
			t.Errorf("%s: %v", r.recorded, err)
		} else if told.version == "" || len(told.exchanges) < 20 {
			t.Errorf("%s: version %q, %d exchanges", r.recorded, told.version, len(told.exchanges))
		}
	}
}

// transcribed reads lines as a transcript.
func transcribed(t *testing.T, text string) (*transcript, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readTranscript(path)
}

func TestTranscript_SendsWordsAndScriptsAsClientsDo(t *testing.T) {
	told, err := transcribed(t, `script one "return 1"
step acquire
on second
! EVAL {text one} 0
! EVALSHA {sha one} 0
until ":1\r\n"
wait kill
! GET a{space}b
`)
	if err != nil {
		t.Fatal(err)
	}
	const bySHA = "*3\r\n$7\r\nEVALSHA\r\n$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n$1\r\n0\r\n"
	wanted := []exchange{
		{number: 4, step: "acquire", connection: "second", send: "*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n"},
		{number: 5, step: "acquire", connection: "second", send: bySHA},
		{number: 6, step: "acquire", connection: "second", send: bySHA, expect: ":1\r\n", again: true},
		{number: 7, step: "acquire", connection: "second", wait: "kill"},
		{number: 8, step: "acquire", connection: "second", send: "*2\r\n$3\r\nGET\r\n$3\r\na b\r\n"},
	}
	if !slices.Equal(told.exchanges, wanted) {
		t.Errorf("got  %+v\nwant %+v", told.exchanges, wanted)
	}
}

func TestPlayer_AsksAgainUntilTheReplyComes(t *testing.T) {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	asked := make(chan int, 1) // the server's last word
	go func() {
		defer server.Close()
		lines := bufio.NewScanner(server)
		n := 0
		for _, reply := range []string{"$-1\r\n", "$-1\r\n", "+OK\r\n"} {
			if lines.Scan() {
				n++
				fmt.Fprint(server, reply)
			}
		}
		asked <- n
	}()
	p := player{conn: client, replies: bufio.NewReader(client)}
	if err := p.play(exchange{send: "SET\n", expect: "+OK\r\n", again: true}); err != nil {
		t.Error(err)
	}
	if n := <-asked; n != 3 {
		t.Errorf("asked %d times, wanted 3", n)
	}
}

func TestPlayer_DoesNotAskAgainAfterAnError(t *testing.T) {
	p, _ := answering(t, "-ERR no\r\n")
	if err := p.play(exchange{send: "SET\n", expect: "+OK\r\n", again: true}); err == nil || !strings.Contains(err.Error(), "-ERR no") {
		t.Error(err)
	}
}

func TestTranscript_NamesTheLineItCannotRead(t *testing.T) {
	for text, problem := range map[string]string{
		"\nstepp x\n": "x.txt:2", "> no quotes\n": "x.txt:1", "\n\n! EVAL {text none} 0\n": "x.txt:3", "until \"x\"\n": "x.txt:1",
	} {
		if _, err := transcribed(t, text); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
