package embedded

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// miniredis stores how long a key has left, so moving its clock means changing every key.
// Here its clock therefore stands still at stillTime. What it stores for a key is then
// the key's end, in ms of the master's own time, and nothing changes while time passes.
// The translator changes what depends on time: miniredis calls it before every command,
// also before those of scripts.
var stillTime = time.UnixMilli(0)

// unsupported are commands that set, copy or hide ends in ways that are not translated.
var unsupported = map[string]bool{
	"GETEX": true, "RESTORE": true, "COPY": true, "MOVE": true, "SWAPDB": true, "MULTI": true,
	"HEXPIRE": true, "HPEXPIRE": true, "HEXPIREAT": true, "HPEXPIREAT": true, "HSETEX": true, "HGETEX": true,
	"HTTL": true, "HPTTL": true, "HEXPIRETIME": true, "HPEXPIRETIME": true, "HPERSIST": true,
}

// untranslated is the client name of a connection whose commands are not translated.
const untranslated = "redlockd-untranslated"

// translator is the hook of a master's miniredis.
type translator struct {
	master *Master
	server *server.Server
}

// translate changes one command, and reports whether it has also answered it.
func (t translator) translate(c *server.Peer, cmd string, args ...string) bool {
	if c.ClientName == untranslated {
		return false
	}
	m := t.master
	if failure := m.at().failure; failure != "" {
		c.WriteError(failure)
		return true
	}
	switch {
	case unsupported[cmd]:
		c.WriteError(fmt.Sprintf("ERR embedded masters do not support %s: its expiry would be wrong; use SET with PX or PXAT, PEXPIRE or PEXPIREAT", cmd))
		return true
	case cmd == "TIME" && len(args) == 0:
		now := m.at().now
		c.WriteStrings([]string{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)})
		return true
	case cmd == "SELECT" && len(args) == 1:
		m.noteDatabase(args[0])
	case cmd == "SCAN" && len(args) > 0:
		return t.scan(c, args)
	case cmd == "DEL" || cmd == "UNLINK":
		m.expiries.recheck(args)
	case cmd == "SET" && len(args) > 2:
		return t.set(c, args)
	case len(args) >= 2 && expireUnits[cmd] != "":
		return t.expire(c, cmd, args)
	case (cmd == "SETEX" || cmd == "PSETEX") && len(args) == 3:
		return t.setEx(c, cmd, args)
	case (cmd == "RENAME" || cmd == "RENAMENX") && len(args) == 2:
		m.expiries.note(args[1], 0) // its end is then read at the next exchange
	case len(args) == 1 && (cmd == "PTTL" || cmd == "TTL" || cmd == "PEXPIRETIME" || cmd == "EXPIRETIME"):
		return t.left(c, cmd, args[0])
	}
	return false
}

// expireUnits are the commands that set the end of an existing key, and the option of SET with the same unit.
var expireUnits = map[string]string{"EXPIRE": "EX", "PEXPIRE": "PX", "EXPIREAT": "EXAT", "PEXPIREAT": "PXAT"}

// expire sets the end of a key that exists. An end in the past deletes the key, as on a real master.
func (t translator) expire(c *server.Peer, cmd string, args []string) bool {
	m := t.master
	end, ok := m.ownTime(expireUnits[cmd], args[1])
	if !ok {
		return false // miniredis reports the error
	}
	if end <= m.at().own() {
		end = 0
	}
	m.expiries.note(args[0], end)
	t.pass(c, append([]string{"PEXPIREAT", args[0], strconv.FormatInt(end, 10)}, args[2:]...)...)
	return true
}

// set handles SET with an expiry; without one there is nothing to translate.
func (t translator) set(c *server.Peer, args []string) bool {
	m := t.master
	var option, end int
	var onlyNew, onlyOld, get bool
	for i := 2; i < len(args); i++ {
		switch args[i] = strings.ToUpper(args[i]); args[i] {
		case "NX":
			onlyNew = true
		case "XX":
			onlyOld = true
		case "GET":
			get = true
		case "EX", "PX", "EXAT", "PXAT":
			option, end = i, i+1
			i++
		}
	}
	if end == 0 || end == len(args) {
		return false
	}
	own, ok := m.ownTime(args[option], args[end])
	if !ok || args[end] == "0" || args[end][0] == '-' {
		return false // miniredis reports the error
	}
	if own > m.at().own() {
		m.expiries.note(args[0], own)
		t.pass(c, append([]string{"SET", args[0], args[1]}, replaced(args[2:], option-2, own)...)...)
		return true
	}
	switch exists := t.raw(c, "EXISTS", args[0]) == 1; {
	case get:
		c.WriteError("ERR embedded masters do not support SET with GET and an end in the past; use an end in the future")
	case onlyNew && exists, onlyOld && !exists:
		c.WriteNull()
	default: // the key would expire at once
		t.raw(c, "DEL", args[0])
		c.WriteOK()
	}
	return true
}

// setEx handles SETEX and PSETEX, which are SET with an expiry in other words.
func (t translator) setEx(c *server.Peer, cmd string, args []string) bool {
	unit := map[string]string{"SETEX": "EX", "PSETEX": "PX"}[cmd]
	return t.set(c, []string{args[0], args[2], unit, args[1]})
}

// replaced are the options of SET with the one at this position written as an end.
func replaced(options []string, at int, end int64) []string {
	options = append([]string(nil), options...)
	options[at], options[at+1] = "PXAT", strconv.FormatInt(end, 10)
	return options
}

// left answers how long a key has left, or when it ends.
func (t translator) left(c *server.Peer, cmd, key string) bool {
	m := t.master
	end := t.raw(c, "PEXPIRETIME", key)
	switch {
	case end < 0: // no such key, or it does not expire
	case cmd == "PTTL":
		end -= m.at().own()
	case cmd == "TTL":
		end = (end - m.at().own() + 500) / 1000
	case cmd == "EXPIRETIME":
		end = (end - m.at().lag.Milliseconds() + 500) / 1000
	default:
		end -= m.at().lag.Milliseconds()
	}
	c.WriteInt(int(end))
	return true
}

// pass executes a translated command for the client.
func (t translator) pass(c *server.Peer, args ...string) {
	name := c.ClientName
	c.ClientName = untranslated
	defer func() { c.ClientName = name }()
	t.server.Dispatch(c, args)
}

// raw is reply for a command that miniredis answers with an integer.
func (t translator) raw(c *server.Peer, args ...string) int64 {
	n, _ := strconv.ParseInt(strings.Trim(t.reply(c, args...), ":\r\n"), 10, 64)
	return n
}

// reply executes a command beside the client's own, in its database and its script, and
// returns what miniredis answers.
func (t translator) reply(c *server.Peer, args ...string) string {
	var reply bytes.Buffer
	out := bufio.NewWriter(&reply)
	beside := server.NewPeer(out)
	beside.Ctx, beside.ClientName = c.Ctx, untranslated
	t.server.Dispatch(beside, args)
	_ = out.Flush() // into memory
	return reply.String()
}
