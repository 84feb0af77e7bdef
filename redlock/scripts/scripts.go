// Package scripts holds the Lua scripts that run on the masters, one a file, and the SHA1s by
// which the masters know them.
package scripts

import (
	"bytes"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
)

//go:embed *.lua
var files embed.FS

// Set are the SHA1s of redlockd's scripts. Every connection loads the texts before it is used, and
// again when the master has lost them.
type Set struct {
	Acquire, Acquires, Extend, Retime, Unupgrade     string
	Release, Releases                                string
	Share, Shares, Permit, Permits                   string
	Multi, MultiExtend                               string
	NextID, Reseed, DeleteID                         string
	Enlist, Dequeue, Edges                           string
	Fair                                             map[string]string // by the SHA1 of the script that does not check the queue
	WorkTry, WorkUndo, WorkEnd, WorkExtend, WorkRead string
	Inspect, Note, Wanted                            string
	View, Write, Trim, Swap                          string
}

// Load returns the SHA1s and the texts.
func Load() (s *Set, texts []string, err error) {
	s = &Set{Fair: map[string]string{}}
	queueCheck, err := Text("fair")
	if err != nil {
		return nil, nil, err
	}
	for _, one := range []struct {
		file string
		sha  *string
	}{
		{"acquire", &s.Acquire}, {"acquires", &s.Acquires}, {"release", &s.Release}, {"releases", &s.Releases},
		{"extend", &s.Extend}, {"retime", &s.Retime}, {"unupgrade", &s.Unupgrade},
		{"share", &s.Share}, {"shares", &s.Shares}, {"permit", &s.Permit}, {"permits", &s.Permits}, {"multi", &s.Multi}, {"multiextend", &s.MultiExtend},
		{"enlist", &s.Enlist}, {"dequeue", &s.Dequeue}, {"edges", &s.Edges},
		{"nextid", &s.NextID}, {"reseed", &s.Reseed}, {"deleteid", &s.DeleteID},
		{"worktry", &s.WorkTry}, {"workundo", &s.WorkUndo}, {"workend", &s.WorkEnd},
		{"workextend", &s.WorkExtend}, {"workread", &s.WorkRead},
		{"inspect", &s.Inspect}, {"note", &s.Note}, {"wanted", &s.Wanted},
		{"view", &s.View}, {"write", &s.Write}, {"trim", &s.Trim}, {"swap", &s.Swap},
	} {
		text, err := Text(one.file)
		if err != nil {
			return nil, nil, fmt.Errorf("script %s: %w", one.file, err)
		}
		*one.sha = sha1Of(text)
		texts = append(texts, string(text))
		if slices.Contains([]string{"acquire", "share", "permit", "multi"}, one.file) {
			checked := slices.Concat(queueCheck, text)
			s.Fair[*one.sha] = sha1Of(checked)
			texts = append(texts, string(checked))
		}
	}
	return s, texts, nil
}

func sha1Of(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// Text is a script as the masters receive it.
func Text(file string) ([]byte, error) {
	text, err := files.ReadFile(file + ".lua")
	if err != nil {
		return nil, err
	}
	for _, part := range []string{"forcerelease.lua", "reader.lua", "slot.lua", "shape.lua", "together.lua", "queue.lua", "clock.lua"} { // each may include later ones
		included, err := files.ReadFile(part)
		if err != nil {
			return nil, err
		}
		text = bytes.Replace(text, []byte("-- include "+part+"\n"), included, 1)
	}
	return text, nil
}
