// How is a library judged that cannot be installed wherever this runs? By the
// bytes it was recorded to send while it played its part, sent again, and by the
// shape of the replies that it was content with.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A transcript has one exchange after another:
//
//	# anything
//	library 3.2.0          the version it was recorded with
//	step connect           begins a step
//	> "*1\r\n$4\r\nPING\r\n"   sent as one piece, in Go's quotes
//	< "+PONG\r\n"              must be the very next bytes
//
// In what is expected, {int} is digits, {line} anything up to the line's end,
// and {token} a token of the daemon, which a later line may send as {token}.
type exchange struct {
	number int // of its line
	step   string
	send   string
	expect string
}

const replyPatience = 10 * time.Second

// readTranscript gives the version and the exchanges of a file.
func readTranscript(path string) (version string, found []exchange, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	number, step := 0, ""
	for line := range strings.Lines(string(text)) {
		number++
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		bytes := ""
		if word == ">" || word == "<" {
			if bytes, err = strconv.Unquote(rest); err != nil {
				return "", nil, fmt.Errorf("%s:%d: %w", path, number, err)
			}
		}
		switch word {
		case "", "#":
		case "library":
			version = rest
		case "step":
			step = rest
		case ">":
			found = append(found, exchange{number: number, step: step, send: bytes})
		case "<":
			found = append(found, exchange{number: number, step: step, expect: bytes})
		default:
			return "", nil, fmt.Errorf("%s:%d: %q is no line of a transcript", path, number, word)
		}
	}
	return version, found, nil
}

// replay is follow for a transcript.
func (out *outcome) replay(o options, d *daemon) {
	version, exchanges, err := readTranscript(filepath.Join(o.programs, "recorded", out.run.recorded))
	if err != nil {
		out.fail("%v", err)
		return
	}
	out.version, out.protocol = version, out.run.protocol
	c, err := net.Dial("tcp", d.address)
	if err != nil {
		out.fail("%v", err)
		return
	}
	defer c.Close()
	p := player{conn: c, replies: bufio.NewReader(c)}
	for i, e := range exchanges {
		if err := p.play(e); err != nil {
			out.fail("%s:%d: step %s: %v", out.run.recorded, e.number, e.step, err)
			return
		}
		if i+1 == len(exchanges) || exchanges[i+1].step != e.step {
			out.passed = append(out.passed, e.step)
		}
	}
	c.Close()
	if err := serve("gone", d); err != nil {
		out.fail("%v", err)
		return
	}
	out.passed = append(out.passed, "close")
}

// player is a connection that acts a client's part.
type player struct {
	conn    net.Conn
	replies *bufio.Reader
	token   string // the last one that was granted
}

func (p *player) play(e exchange) error {
	if err := p.conn.SetDeadline(time.Now().Add(replyPatience)); err != nil {
		return err
	}
	if e.send != "" {
		_, err := io.WriteString(p.conn, strings.ReplaceAll(e.send, "{token}", p.token))
		return err
	}
	return p.expect(e.expect)
}

var placeholders = strings.NewReplacer(`\{int\}`, `[0-9]+`, `\{line\}`, `[^\r\n]*`, `\{token\}`, `([A-Za-z0-9_-]{27})`)

// expect reads byte by byte until all that was expected has come.
func (p *player) expect(wanted string) error {
	pattern, err := regexp.Compile(`(?s)\A` + placeholders.Replace(regexp.QuoteMeta(wanted)) + `\z`)
	if err != nil {
		return err
	}
	var got []byte
	for {
		b, err := p.replies.ReadByte()
		if err != nil {
			return fmt.Errorf("got %q, wanted %q: %w", got, wanted, err)
		}
		got = append(got, b)
		if b != '\n' {
			continue
		}
		if m := pattern.FindSubmatch(got); m != nil {
			if len(m) > 1 {
				p.token = string(m[1])
			}
			return nil
		}
	}
}
