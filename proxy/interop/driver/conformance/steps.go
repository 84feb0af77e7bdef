package main

import (
	"fmt"
	"strings"
)

// step is one rule of the contract.
type step struct {
	name string
	play func(p *player)
}

// long is a ttl that does not end during a step.
const long = 30000

var steps = []step{
	{"protocols: RESP2 at first, HELLO 3 is a map, HELLO 2 a list, HELLO 4 is NOPROTO", func(p *player) {
		c := p.connect()
		if fields, is := c.ask("HELLO", "3").(table); !is || fields["proto"] != int64(3) {
			fail("HELLO 3 replies %#v", fields)
		}
		c.refuses("NOPROTO", "HELLO", "4")
		if list, is := c.ask("HELLO", "2").([]any); !is || len(list)%2 != 0 {
			fail("HELLO 2 replies %#v", list)
		}
		c.wants("PONG", "PING")
	}},
	{"grant: [token, validity, fence]; another client gets nil", func(p *player) {
		c, other := p.connect(), p.connect()
		g := c.lock(p.key, long)
		other.wants(null{}, "DLOCK", p.key, "30000")
		c.wants(null{}, "DLOCK", p.key, "30000") // not reentrant
		c.wants(int64(1), "DUNLOCK", p.key, g.token)
	}},
	{"release: only by the token, once; then the key is free", func(p *player) {
		c, other := p.connect(), p.connect()
		g := c.lock(p.key, long)
		other.wants(int64(0), "DUNLOCK", p.key, g.token+"x")
		other.wants(null{}, "DLOCK", p.key, "30000")
		other.wants(int64(1), "DUNLOCK", p.key, g.token)
		c.wants(int64(0), "DUNLOCK", p.key, g.token)
		other.lock(p.key, long)
	}},
	{"release without a token: what this connection took", func(p *player) {
		c, other := p.connect(), p.connect()
		c.lock(p.key, long)
		other.refuses("ERR", "DUNLOCK", p.key)
		c.wants(int64(1), "DUNLOCK", p.key)
	}},
	{"fences rise with each grant; tokens differ", func(p *player) {
		var last grant
		for range 5 {
			c := p.connect()
			g := c.lock(p.key, long)
			if g.fence <= last.fence || g.token == last.token {
				fail("fence %d and token %q after fence %d and token %q", g.fence, g.token, last.fence, last.token)
			}
			c.wants(int64(1), "DUNLOCK", p.key, g.token)
			last = g
		}
	}},
	{"extension: a validity for the token, nil for another one and after the release", func(p *player) {
		c := p.connect()
		g := c.lock(p.key, 5000)
		if v := c.validity(long, "DEXTEND", p.key, g.token, "30000"); v <= 5000 {
			fail("a validity of %d ms after an extension to %d", v, long)
		}
		c.wants(null{}, "DEXTEND", p.key, g.token+"x", "30000")
		c.wants(int64(1), "DUNLOCK", p.key, g.token)
		c.wants(null{}, "DEXTEND", p.key, g.token, "30000")
	}},
	{"a lease ends by itself; its token then neither extends nor releases", func(p *player) {
		c, other := p.connect(), p.connect()
		g := c.lock(p.key, 2000)
		next := granted(other.ask("DLOCK", p.key, "30000", "WAIT", "60000"), long)
		if next.fence <= g.fence {
			fail("fence %d after %d", next.fence, g.fence)
		}
		c.wants(null{}, "DEXTEND", p.key, g.token, "30000")
		c.wants(int64(0), "DUNLOCK", p.key, g.token)
		c.wants(null{}, "DLOCK", p.key, "30000")
	}},
	{"TOKEN: a repetition is granted again, with a higher fence; another token is not", func(p *player) {
		c, other := p.connect(), p.connect()
		token := "conformance-" + p.key
		first := c.lock(p.key, long, "TOKEN", token)
		again := other.lock(p.key, long, "TOKEN", token)
		if first.token != token || again.token != token || again.fence <= first.fence {
			fail("%+v, then %+v", first, again)
		}
		other.wants(null{}, "DLOCK", p.key, "30000", "TOKEN", token+"2")
		c.wants(int64(1), "DUNLOCK", p.key, token)
	}},
	{"WAIT: granted at the release, in order on the connection; nil at its end", func(p *player) {
		c, other := p.connect(), p.connect()
		g := c.lock(p.key, long)
		other.wants(null{}, "DLOCK", p.key, "30000", "WAIT", "20")
		other.send("DLOCK", p.key, "30000", "WAIT", "60000")
		other.send("PING")
		other.silent()
		c.wants(int64(1), "DUNLOCK", p.key, g.token)
		next := granted(other.receive(), long)
		if got := other.receive(); got != "PONG" || next.fence <= g.fence {
			fail("%+v after fence %d, then %#v", next, g.fence, got)
		}
		other.validity(long, "DEXTEND", p.key, next.token, "30000")
	}},
	{"HOLD: renewed beyond its ttl, released with the connection", func(p *player) {
		c, other := p.connect(), p.connect()
		c.lock(p.key, 3000, "HOLD")
		other.wants(null{}, "DLOCK", p.key, "30000", "WAIT", "4000")
		c.net.Close()
		granted(other.ask("DLOCK", p.key, "30000", "WAIT", "60000"), long)
	}},
	{"pushes to RESP3: dlock-wanted and dlock-lost to the holder with HOLD", func(p *player) {
		c, other := p.connect(), p.connect()
		c.ask("HELLO", "3")
		g := c.lock(p.key, long, "HOLD")
		other.wants(int64(1), "DREVOKE", p.key, "now")
		if got := fmt.Sprint(c.receive()); got != fmt.Sprint(push{"dlock-wanted", p.key, "now"}) {
			fail("%s after DREVOKE", got)
		}
		other.wants(int64(1), "DFORCE", p.key)
		lost, is := c.receive().(push)
		if !is || len(lost) != 4 || lost[0] != "dlock-lost" || lost[1] != p.key || lost[2] != g.token {
			fail("%#v after DFORCE", lost)
		}
		c.wants(null{}, "DEXTEND", p.key, g.token, "30000")
	}},
	{"pipelining: every reply, in the order of the commands", func(p *player) {
		const n = 100
		c, tokens := p.connect(), make([]string, n)
		for i := range n {
			c.send("DLOCK", fmt.Sprintf("%s:%d", p.key, i), "30000")
			c.send("ECHO", fmt.Sprint(i))
		}
		for i := range n {
			tokens[i] = granted(c.receive(), long).token
			if got := c.receive(); got != fmt.Sprint(i) {
				fail("%#v in the place of %d", got, i)
			}
		}
		for i := range n {
			c.send("DUNLOCK", fmt.Sprintf("%s:%d", p.key, i), tokens[i])
		}
		for i := range n {
			if got := c.receive(); got != int64(1) {
				fail("release %d replies %#v", i, got)
			}
		}
	}},
	{"several keys: all or none, one token and fence", func(p *player) {
		c, other := p.connect(), p.connect()
		a, b := p.key+":a", p.key+":b"
		g := granted(c.ask("DMLOCK", "30000", "2", a, b), long)
		other.wants(null{}, "DLOCK", b, "30000")
		other.wants(null{}, "DMLOCK", "30000", "2", p.key+":c", a)
		other.lock(p.key+":c", long)
		c.validity(long, "DMEXTEND", g.token, "30000", "2", a, b)
		c.wants(int64(2), "DMUNLOCK", g.token, "2", a, b)
		other.lock(a, long)
	}},
	{"readers exclude writers only; LIMIT admits so many", func(p *player) {
		c, other := p.connect(), p.connect()
		c.lock(p.key, long, "SHARED")
		other.lock(p.key, long, "SHARED")
		other.wants(null{}, "DLOCK", p.key, "30000")
		c.lock(p.key+":limit", long, "LIMIT", "2")
		other.lock(p.key+":limit", long, "LIMIT", "2")
		c.wants(null{}, "DLOCK", p.key+":limit", "30000", "LIMIT", "2")
	}},
	{"keys and tokens are bytes; databases are apart", func(p *player) {
		c, other := p.connect(), p.connect()
		key, token := p.key+"\x00\r\n\xff", "token\x00\r\n\xfe"
		if g := c.lock(key, long, "TOKEN", token); g.token != token {
			fail("token %q, want %q", g.token, token)
		}
		other.wants(null{}, "DLOCK", key, "30000")
		other.wants("OK", "SELECT", "1")
		other.lock(key, long)
		c.wants(int64(1), "DUNLOCK", key, token)
		other.wants(int64(1), "DUNLOCK", key)
	}},
	{"errors begin with a code, change nothing and leave the connection open", func(p *player) {
		c := p.connect()
		for _, words := range [][]string{
			{"DLOCK", p.key}, {"DLOCK", p.key, "0"}, {"DLOCK", p.key, "soon"}, {"DLOCK", p.key, "30000", "LATER"},
			{"DLOCK", p.key, "30000", "WAIT"}, {"DEXTEND", p.key, "token", "-1"}, {"CONFORMANCE"},
		} {
			c.refuses("ERR", words...)
		}
		if got, is := c.ask("CONFORMANCE", "x").(errReply); !is || !strings.HasPrefix(string(got), "ERR unknown command 'CONFORMANCE'") {
			fail("an unknown command replies %#v", got)
		}
		c.lock(p.key, long)
	}},
	{"ids rise; COUNT takes as many", func(p *player) {
		c, other := p.connect(), p.connect()
		first, is := c.ask("DNEXTID", p.key).(int64)
		if !is {
			return // a group in memory has no ids: NOTDURABLE
		}
		many, _ := other.ask("DNEXTID", p.key, "COUNT", "10").(int64)
		next, _ := c.ask("DNEXTID", p.key).(int64)
		if first < 1 || many <= first || next < many+10 {
			fail("ids %d, %d to %d, then %d", first, many, many+9, next)
		}
	}},
}
