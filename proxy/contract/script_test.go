package contract

import (
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/proxy/resp"
)

// A transcript is a golden file of commands and replies. Replies are the indented
// lines; `make golden` writes them anew. All other lines are kept:
//
//	# comment
//	protocols 2 3             the protocols; "3" stands before what only RESP3 replies
//	daemon ARGUMENT…          starts a daemon for the lines that follow
//	starting ARGUMENT…        the same, and does not wait until its masters vote
//	stop                      sends SIGTERM to it
//	> COMMAND                 sends a command and reads the reply
//	a> COMMAND                on connection a; a connection opens with its first line
//	a& COMMAND                sends and does not read
//	a^                        reads one push, with RESP3 only
//	a= TEXT                   sends the text as it is, with escapes as in Go
//	a<                        reads one reply or push
//	a? COMMAND                repeats until the reply is neither empty nor an error
//	a! COMMAND                repeats until the reply is an error
//	a.                        closes the connection
//	GET PATH, POST PATH BODY  sends a request to the admin endpoint
//
// With RESP3 a connection sends HELLO first, unless its name is in upper case. A word
// may be "quoted as in Go"; {x*600} is x 600 times; $name is what an earlier reply held.
// Behind a command "=> $name" stores the first token of the reply, "=> shape" shows
// only its types, "=> fields" only the names in INFO, "=> -" nothing.
type script struct {
	name  string
	lines []string // without replies
}

func readScript(t *testing.T, name string) script {
	t.Helper()
	text, err := os.ReadFile(golden(name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return script{name, slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  ") })}
}

// protocols are those of the first line that names them.
func (s script) protocols() []string {
	for _, line := range s.lines {
		if words, ok := strings.CutPrefix(line, "protocols "); ok {
			return strings.Fields(words)
		}
	}
	return []string{"2", "3"}
}

// player plays a script with one protocol.
type player struct {
	*testing.T
	protocol string
	daemon   *process
	conns    map[string]*conn
	values   map[string]string
}

type conn struct {
	net.Conn
	in *resp.Reader
}

// play returns the rendered reply of each line, "" for none.
func (s script) play(t *testing.T, protocol string) (replies []string) {
	p := &player{T: t, protocol: protocol, conns: map[string]*conn{}, values: map[string]string{"proto": protocol}}
	defer p.closeAll()
	for i, line := range s.lines {
		replies = append(replies, p.line(line))
		if t.Failed() {
			t.Fatalf("%s, RESP%s: line %d: %s", s.name, protocol, i+1, line)
		}
	}
	return replies
}

var commandLine = regexp.MustCompile(`^(\w*)([>&<?!^=.])(?: (.*))?$`)

func (p *player) line(line string) string {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "", "#", "protocols":
		return ""
	case "daemon", "starting":
		p.closeAll()
		p.daemon = start(p.T, strings.Fields(rest)...)
		if word == "daemon" {
			p.daemon.awaitMasters(p.T)
		}
		return ""
	case "stop":
		p.daemon.stop(p.T)
		return ""
	case "GET", "POST":
		return p.daemon.request(p.T, word, rest)
	}
	command, use, _ := strings.Cut(line, " => ")
	m := commandLine.FindStringSubmatch(command)
	if m == nil {
		p.Error("cannot be read")
		return ""
	}
	return p.exchange(m[1], m[2], m[3], use)
}

func (p *player) exchange(name, do, command, use string) string {
	c := p.connection(name)
	switch do {
	case ".":
		c.Close()
		delete(p.conns, name)
		return ""
	case "<":
		return p.show(p.read(c), use)
	case "^":
		if p.protocol == "2" {
			return ""
		}
		return p.show(p.read(c), use)
	case "=":
		text, err := strconv.Unquote(`"` + command + `"`)
		if _, err2 := io.WriteString(c, text); err != nil || err2 != nil {
			p.Error(err, err2)
		}
		return ""
	case "?", "!":
		for end := time.Now().Add(timeout); time.Now().Before(end); {
			p.send(c, command)
			r := p.read(c)
			if failed := r.kind == '-'; failed == (do == "!") && (failed || len(r.items) > 0) {
				return p.show(r, use)
			}
		}
		p.Error("does not happen")
		return ""
	}
	p.send(c, command)
	if do == "&" {
		return ""
	}
	return p.show(p.read(c), use)
}

// connection opens it if it is new, with the protocol of the player.
func (p *player) connection(name string) *conn {
	if c := p.conns[name]; c != nil {
		return c
	}
	raw, err := net.DialTimeout("tcp", p.daemon.address, timeout)
	if err != nil {
		p.Fatal(err)
	}
	c := &conn{raw, resp.NewReader(raw)}
	p.conns[name] = c
	if p.protocol == "3" && name == strings.ToLower(name) {
		p.send(c, "HELLO 3")
		p.read(c) // an error where a login is needed
	}
	return c
}

func (p *player) send(c *conn, command string) {
	if _, err := c.Write(resp.AppendCommand(nil, p.words(command)...)); err != nil {
		p.Error(err)
	}
}

func (p *player) read(c *conn) reply {
	_ = c.SetReadDeadline(time.Now().Add(timeout)) // the read fails if the connection is closed
	v, err := c.in.ReadValue()
	if err != nil {
		return reply{kind: '+', text: "connection closed"}
	}
	return replyOf(v)
}

func (p *player) show(r reply, use string) string {
	switch name, isValue := strings.CutPrefix(use, "$"); {
	case use == "-":
		return ""
	case isValue:
		p.values[name] = r.first()
	case use == "shape":
		r = r.shape()
	case use == "fields":
		r = r.fields()
	}
	return r.settle("").render("  ")
}

// first is the first token in a reply, or its first text.
func (r reply) first() string {
	if r.kind == '$' && (tokenText.MatchString(r.text) || idText.MatchString(r.text)) {
		return r.text
	}
	for _, item := range r.items {
		if text := item.first(); text != "" {
			return text
		}
	}
	return ""
}

var (
	wordPattern  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)
	repeatedText = regexp.MustCompile(`\{(.)\*(\d+)\}`)
	valueName    = regexp.MustCompile(`\$[a-z]+`)
)

func (p *player) words(line string) []string {
	words := wordPattern.FindAllString(line, -1)
	for i, word := range words {
		if text, err := strconv.Unquote(word); err == nil {
			words[i] = text
			continue
		}
		word = repeatedText.ReplaceAllStringFunc(word, func(s string) string {
			m := repeatedText.FindStringSubmatch(s)
			n, _ := strconv.Atoi(m[2])
			return strings.Repeat(m[1], n)
		})
		words[i] = valueName.ReplaceAllStringFunc(word, func(s string) string {
			if value, known := p.values[s[1:]]; known {
				return value
			}
			return s
		})
	}
	return words
}

func (p *player) closeAll() {
	for _, c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// merge writes the transcript: a reply once if the protocols agree.
func (s script) merge(protocols []string, played [][]string) string {
	var out strings.Builder
	for i, line := range s.lines {
		out.WriteString(line + "\n")
		same := !slices.ContainsFunc(played, func(replies []string) bool { return replies[i] != played[0][i] })
		for j, replies := range played {
			mark := " "
			if !same {
				mark = protocols[j]
			}
			if replies[i] != "" && (j == 0 || !same) {
				out.WriteString("  " + strings.TrimPrefix(mark+" ", "  ") + replies[i] + "\n")
			}
		}
	}
	return out.String()
}
