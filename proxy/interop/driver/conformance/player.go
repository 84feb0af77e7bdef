package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// player has what a step uses.
type player struct {
	target
	key   string
	conns []*conn
}

func (p *player) close() {
	for _, c := range p.conns {
		c.net.Close()
	}
}

// conn is one connection. Its methods fail the step.
type conn struct {
	net      net.Conn
	reader   *bufio.Reader
	patience time.Duration
}

// The kinds of replies that are no text, number or list.
type (
	null     struct{}
	errReply string
	push     []any
	table    map[string]any
)

// connect opens a connection that is logged in and speaks RESP2.
func (p *player) connect() *conn {
	raw, err := net.DialTimeout("tcp", p.address, p.patience)
	if err != nil {
		fail("%v", err)
	}
	c := &conn{raw, bufio.NewReader(raw), p.patience}
	p.conns = append(p.conns, c)
	if p.password != "" {
		login := []string{"AUTH", p.password}
		if p.user != "" {
			login = []string{"AUTH", p.user, p.password}
		}
		c.wants("OK", login...)
	}
	return c
}

func (c *conn) send(words ...string) {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(c.net, text); err != nil {
		fail("%q: %v", words, err)
	}
}

// receive returns the next reply: string, int64, []any or one of the kinds above.
func (c *conn) receive() any {
	c.net.SetReadDeadline(time.Now().Add(c.patience))
	reply, err := c.read()
	if err != nil {
		fail("no reply: %v", err)
	}
	return reply
}

// silent fails if anything arrives at once: what must not come yet.
func (c *conn) silent() {
	c.net.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.reader.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		fail("a reply came too early (%v)", err)
	}
}

func (c *conn) read() (any, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return nil, fmt.Errorf("%q is no line of RESP", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return errReply(text), nil
	case '_':
		return null{}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no line of RESP", line)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return null{}, nil
	case kind == '$' || kind == '=':
		content := make([]byte, n+2)
		_, err := io.ReadFull(c.reader, content)
		return string(content[:n]), err
	case kind == '*' || kind == '~' || kind == '>':
		list, err := c.readList(n)
		if kind == '>' {
			return push(list), err
		}
		return list, err
	case kind == '%':
		list, err := c.readList(2 * n)
		fields := table{}
		for i := 0; i+1 < len(list); i += 2 {
			fields[fmt.Sprint(list[i])] = list[i+1]
		}
		return fields, err
	}
	return nil, fmt.Errorf("%q: the kind is not of this contract", line)
}

func (c *conn) readList(n int64) (list []any, err error) {
	for range n {
		one, err := c.read()
		if err != nil {
			return list, err
		}
		list = append(list, one)
	}
	return list, nil
}

func (c *conn) ask(words ...string) any {
	c.send(words...)
	return c.receive()
}

// wants compares the reply: a text, an int64 or null{}.
func (c *conn) wants(want any, words ...string) {
	if got := c.ask(words...); got != want {
		fail("%q replies %#v, want %#v", words, got, want)
	}
}

// refuses wants an error that begins with a code.
func (c *conn) refuses(code string, words ...string) {
	got, is := c.ask(words...).(errReply)
	if !is || !strings.HasPrefix(string(got), code+" ") {
		fail("%q replies %#v, want an error %s", words, got, code)
	}
}

// grant is the reply of DLOCK.
type grant struct {
	token    string
	validity int64
	fence    int64
}

func granted(reply any, ttl int64) (g grant) {
	list, _ := reply.([]any)
	if len(list) != 3 {
		fail("want [token, validity, fence], got %#v", reply)
	}
	token, is1 := list[0].(string)
	validity, is2 := list[1].(int64)
	fence, is3 := list[2].(int64)
	if !is1 || !is2 || !is3 || token == "" || validity < 1 || validity > ttl || fence < 1 {
		fail("want [a token, a validity of 1 to %d ms, a fence above 0], got %#v", ttl, list)
	}
	return grant{token, validity, fence}
}

// lock takes a key for ttl ms.
func (c *conn) lock(key string, ttl int64, more ...string) grant {
	return granted(c.ask(append([]string{"DLOCK", key, strconv.FormatInt(ttl, 10)}, more...)...), ttl)
}

// validity wants the reply of DEXTEND.
func (c *conn) validity(ttl int64, words ...string) int64 {
	v, is := c.ask(words...).(int64)
	if !is || v < 1 || v > ttl {
		fail("%q replies %#v, want a validity of 1 to %d ms", words, v, ttl)
	}
	return v
}
