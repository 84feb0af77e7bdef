// Package fake is a Redis master without a process: a memory, the commands that redlockd
// sends, and its scripts, at a clock that the caller sets. TestDifferential of package sim
// compares it with redis-server.
//
// Reading order: master.go, scripts.go, memory.go, commands.go, collections.go.
package fake

import (
	"strings"

	"redlockd/pool/wire"
)

// Master is one master. It belongs to one goroutine.
type Master struct {
	Memory  Memory
	Scripts *Scripts
	Loaded  map[string]bool // SHA1 of the scripts that this process has loaded
	Now     int64           // ms of its clock, read once per command
	Micros  int64           // the same in µs

	Executed int64  // commands, by this process, those of scripts included
	Denied   string // a command that the user may not send; "" = none

	// Own are the commands of the process, such as INFO; they win over those on the memory.
	Own map[string]func(a []string) wire.Reply
	// Changed is called when a key has changed or expired, unless nil.
	Changed func(key string)
	// Missing is called for a command that the master does not have, so that a new script
	// cannot fail unnoticed, unless nil.
	Missing func(a []string)
}

// Execute runs one command.
func (m *Master) Execute(a []string) wire.Reply {
	m.Executed++
	if m.Denied == a[0] {
		return refusal("NOPERM this user has no permissions to run the '" + strings.ToLower(a[0]) + "' command")
	}
	if own := m.Own[a[0]]; own != nil {
		return own(a)
	}
	if handle := handlers[a[0]]; handle != nil {
		r := handle(m, a)
		m.notify(a, r)
		return r
	}
	switch a[0] {
	case "EVALSHA":
		if !m.Loaded[a[1]] {
			return refusal("NOSCRIPT No matching script. Please use EVAL.")
		}
		return m.Scripts.run(m, a[1], a)
	case "EVAL", "SCRIPT":
		return m.loadAndRun(a)
	}
	if m.Missing != nil {
		m.Missing(a)
	}
	return refusal("ERR unknown command '" + a[0] + "'")
}

// loadAndRun serves SCRIPT LOAD, which only loads, and EVAL.
func (m *Master) loadAndRun(a []string) wire.Reply {
	script := a[1]
	if a[0] == "SCRIPT" {
		script = a[2]
	}
	sha, err := m.Scripts.load(script)
	if err != nil {
		return refusal("ERR " + err.Error())
	}
	m.Loaded[sha] = true
	if a[0] == "SCRIPT" {
		return Text(sha)
	}
	return m.Scripts.run(m, sha, a)
}

// notify reports the keys that a command has changed.
func (m *Master) notify(a []string, r wire.Reply) {
	if m.Changed == nil {
		return
	}
	keys := a[1:min(2, len(a))]
	switch a[0] {
	case "SET":
		if r.Kind == wire.ReplyNil {
			return
		}
	case "ZADD", "HSET":
	case "DEL":
		keys = a[1:]
		if r.Int == 0 {
			return
		}
	case "PEXPIREAT", "PEXPIRE", "ZREM", "ZREMRANGEBYSCORE", "HDEL":
		if r.Int == 0 {
			return
		}
	default:
		return
	}
	for _, key := range keys {
		m.Changed(key)
	}
}
