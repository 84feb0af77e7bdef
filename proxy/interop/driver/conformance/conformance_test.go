package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// daemon starts a real one with masters inside its process and returns its address.
func daemon(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "redlockd")
	if output, err := exec.Command("go", "build", "-C", "../../../..", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	process := exec.Command(binary, "--embedded", "3", "--listen", "127.0.0.1:0", "--ids-durability", "off", "--drain-grace", "0")
	says, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	lines := bufio.NewScanner(says)
	for lines.Scan() {
		if address := regexp.MustCompile(`127\.0\.0\.1:[1-9]\d*`).FindString(lines.Text()); address != "" {
			go io.Copy(io.Discard, says)
			return address
		}
	}
	t.Fatal("the daemon does not print its address")
	return ""
}

// lie changes a reply, given the command and both as bytes. It is called for one at a time.
type lie func(command string, reply []byte) []byte

// liar answers as the server does, but for its lie.
func liar(t *testing.T, server string, tell lie) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var mu sync.Mutex
	locked := func(command string, reply []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		return tell(command, reply)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(client, server, locked)
		}
	}()
	return listener.Addr().String()
}

// relay passes replies on, each with its command; pushes have none.
func relay(client net.Conn, server string, tell lie) {
	defer client.Close()
	backend, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer backend.Close()
	commands := make(chan string, 1000)
	go func() {
		defer backend.Close()
		var raw bytes.Buffer
		reader := &conn{reader: bufio.NewReader(io.TeeReader(&oneByte{client}, &raw))}
		for {
			words, err := reader.read()
			if err != nil {
				return
			}
			list, _ := words.([]any)
			var text []string
			for _, word := range list {
				text = append(text, word.(string))
			}
			commands <- strings.Join(text, " ")
			if _, err := backend.Write(raw.Bytes()); err != nil {
				return
			}
			raw.Reset()
		}
	}()
	var raw bytes.Buffer
	reader := &conn{reader: bufio.NewReader(io.TeeReader(&oneByte{backend}, &raw))}
	for {
		reply, err := reader.read()
		if err != nil {
			return
		}
		command := "push"
		if _, pushed := reply.(push); !pushed {
			command = <-commands
		}
		if _, err := client.Write(tell(command, raw.Bytes())); err != nil {
			return
		}
		raw.Reset()
	}
}

// oneByte reads byte by byte, so that no byte of the next message is copied early.
type oneByte struct{ io.Reader }

func (o *oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

func play(t *testing.T, address, only string) (failed int, output string) {
	t.Helper()
	var out strings.Builder
	failed = target{address: address, patience: 60 * time.Second, only: only}.play(&out)
	return failed, out.String()
}

func replacing(command, old, new string) lie {
	pattern, from := regexp.MustCompile(command), regexp.MustCompile(old)
	return func(command string, reply []byte) []byte {
		if pattern.MatchString(command) {
			return from.ReplaceAll(reply, []byte(new))
		}
		return reply
	}
}

func TestConformance_ADaemonPassesAndLiarsFail(t *testing.T) {
	server := daemon(t)
	if failed, output := play(t, server, ""); failed > 0 {
		t.Fatalf("%d steps failed:\n%s", failed, output)
	}
	if failed, output := play(t, liar(t, server, func(_ string, reply []byte) []byte { return reply }), ""); failed > 0 {
		t.Fatalf("%d steps failed at one that does not lie:\n%s", failed, output)
	}
	fence := regexp.MustCompile(`:\d{16}\r\n$`)
	var lastFence []byte
	for _, c := range []struct {
		step string // which must notice the lie
		tell lie
	}{
		{"protocols", replacing("^HELLO 3", `proto\r\n:3`, "proto\r\n:2")},
		{"protocols", replacing("^HELLO 4", "-NOPROTO", "-ERR")},
		{"grant", replacing("^DLOCK", `^(\$-1|_)\r\n`, "*3\r\n$$1\r\na\r\n:29000\r\n:1795200558272421\r\n")}, // to everybody
		{"grant", replacing("^DLOCK", `\r\n:2\d{4}\r\n`, "\r\n:30001\r\n")},                                  // a validity above the ttl
		{"grant", replacing("^DLOCK", `^\*3\r\n`, "*2\r\n")},
		{"release", replacing("^DUNLOCK .*x$", "^:0", ":1")},
		{"release", replacing("^DUNLOCK", "^:0", ":1")},
		{"release without a token", replacing(`^DUNLOCK \S+$`, "^:1", ":0")},
		{"fences rise", func(command string, reply []byte) []byte { // the same one for every grant
			if !strings.HasPrefix(command, "DLOCK") || !fence.Match(reply) {
				return reply
			}
			if lastFence == nil {
				lastFence = bytes.Clone(fence.Find(reply))
			}
			return fence.ReplaceAll(reply, lastFence)
		}},
		{"extension", replacing("^DEXTEND .*x 30000$", `^(\$-1|_)\r\n`, ":29000\r\n")},
		{"extension", replacing("^DEXTEND", `^:2\d{4}`, ":4900")},
		{"a lease ends", replacing("^DEXTEND", `^(\$-1|_)\r\n`, ":29000\r\n")},
		{"TOKEN", replacing(`^DLOCK .* TOKEN conformance-\S*\d$`, `^(?s)\*3.*`, "$$-1\r\n")},
		{"WAIT", replacing("^DLOCK .* WAIT 20$", `^\$-1`, "+OK")},
		{"HOLD", replacing("^DLOCK .* WAIT 4000$", `^\$-1\r\n`, "*3\r\n$$1\r\na\r\n:29000\r\n:1795200558272421\r\n")},
		{"pushes", replacing("push", "dlock-lost", "dlock-last")},
		{"pipelining", replacing("^ECHO 50$", "50", "51")},
		{"several keys", replacing("^DMUNLOCK", "^:2", ":1")},
		{"readers", replacing("^DLOCK .* SHARED$", `^(?s)\*3.*`, "$$-1\r\n")},
		{"keys and tokens", replacing("^DLOCK .*\x00", `(?s)^(.*)token`, "${1}nekot")},
		{"errors", replacing("^CONFORMANCE x", "unknown command", "no command")},
		{"errors", replacing("^DLOCK .* 0$", "^-ERR .*\r\n", "+OK\r\n")},
		{"ids", replacing("^DNEXTID", `^:\d+`, ":1")},
	} {
		t.Run(c.step, func(t *testing.T) {
			if failed, output := play(t, liar(t, server, c.tell), c.step); failed != 1 {
				t.Errorf("%d steps failed:\n%s", failed, output)
			}
		})
	}
}
