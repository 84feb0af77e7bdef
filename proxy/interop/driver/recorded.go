// Recorded libraries, for those that cannot be installed everywhere. The driver sends the
// recorded bytes of a library again, and compares the shape of the replies with those
// that the library accepted.

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	replyPatience  = 10 * time.Second
	againPatience  = 30 * time.Second       // for what has to be asked again
	againEverySome = 100 * time.Millisecond // a client that polls is no faster
)

// replay is follow for a transcript.
func (out *outcome) replay(o options, d *daemon) {
	told, err := readTranscript(filepath.Join(o.programs, "recorded", out.run.recorded))
	if err != nil {
		out.fail("%v", err)
		return
	}
	out.version, out.protocol = told.version, out.run.protocol
	players := make(map[string]*player) // by the name of their connection
	defer func() {
		for _, p := range players {
			p.conn.Close()
		}
	}()
	for i, e := range told.exchanges {
		if err := out.act(e, players, d); err != nil {
			out.fail("%s:%d: step %s: %v", out.run.recorded, e.number, e.step, err)
			return
		}
		if i+1 == len(told.exchanges) || told.exchanges[i+1].step != e.step {
			out.passed = append(out.passed, e.step)
		}
	}
	for _, p := range players {
		p.conn.Close()
	}
	if err := serve("gone", d); err != nil {
		out.fail("%v", err)
		return
	}
	out.passed = append(out.passed, "close")
}

// act plays one exchange, on a connection that is made when it is first named.
func (out *outcome) act(e exchange, players map[string]*player, d *daemon) error {
	if e.wait != "" {
		return serve(e.wait, d)
	}
	p := players[e.connection]
	if p == nil {
		c, err := net.Dial("tcp", d.address)
		if err != nil {
			return err
		}
		p = &player{conn: c, replies: bufio.NewReader(c)}
		players[e.connection] = p
	}
	return p.play(e)
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
	switch {
	case e.again:
		return p.insist(e)
	case e.send != "":
		_, err := io.WriteString(p.conn, strings.ReplaceAll(e.send, "{token}", p.token))
		return err
	}
	return p.expect(e.expect)
}

// insist sends until the reply comes. Others may come before, of one line each.
func (p *player) insist(e exchange) error {
	for end := time.Now().Add(againPatience); ; time.Sleep(againEverySome) {
		if err := p.play(exchange{send: e.send}); err != nil {
			return err
		}
		line, err := p.replies.ReadString('\n')
		switch {
		case err != nil:
			return err
		case line == e.expect:
			return nil
		case line[0] == '-' || time.Now().After(end):
			return fmt.Errorf("got %q, wanted %q", line, e.expect)
		}
	}
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
