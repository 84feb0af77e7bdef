package redlock

import (
	"bytes"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// scripts are the SHA1s by which the masters know redlockd's scripts. Every connection
// loads them before it is used, so EVALSHA is enough.
type scripts struct {
	acquire, release, releases, extend, unupgrade    string
	share, permit, multi, multiExtend                string
	nextID, readID, reseed, deleteID                 string
	enlist, keep, dequeue                            string
	fair                                             map[string]string // by the SHA1 of the script that does not check the queue
	workTry, workUndo, workEnd, workExtend, workRead string
	inspect, note                                    string
	view, write, trim                                string
	noShorten                                        [2]string // put before and after a library's script
}

// load fills in the SHA1s and returns the texts.
func (s *scripts) load() ([]string, error) {
	var texts []string
	for _, one := range []struct {
		file string
		sha  *string
	}{
		{"acquire", &s.acquire}, {"release", &s.release}, {"releases", &s.releases},
		{"extend", &s.extend}, {"unupgrade", &s.unupgrade},
		{"share", &s.share}, {"permit", &s.permit}, {"multi", &s.multi}, {"multiextend", &s.multiExtend},
		{"enlist", &s.enlist}, {"keep", &s.keep}, {"dequeue", &s.dequeue},
		{"nextid", &s.nextID}, {"readid", &s.readID}, {"reseed", &s.reseed}, {"deleteid", &s.deleteID},
		{"worktry", &s.workTry}, {"workundo", &s.workUndo}, {"workend", &s.workEnd},
		{"workextend", &s.workExtend}, {"workread", &s.workRead},
		{"inspect", &s.inspect}, {"note", &s.note},
		{"view", &s.view}, {"write", &s.write}, {"trim", &s.trim},
	} {
		text, err := scriptText(one.file)
		if err != nil {
			return nil, fmt.Errorf("script %s: %w", one.file, err)
		}
		sum := sha1.Sum(text)
		*one.sha = hex.EncodeToString(sum[:])
		texts = append(texts, string(text))
	}
	wrapper, err := scriptText("noshorten")
	if err != nil {
		return nil, err
	}
	before, after, _ := strings.Cut(withoutComments(string(wrapper)), libraryMarker)
	s.noShorten = [2]string{before, "\n" + after}
	return s.loadFair(texts)
}

// libraryMarker is the line of noshorten.lua that a library's script replaces.
const libraryMarker = "-- the script\n"

// withoutComments removes the comments of a text that is sent each time.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") || line == libraryMarker {
			b.WriteString(line)
		}
	}
	return b.String()
}

// loadFair adds the lock scripts that check the queue first.
func (s *scripts) loadFair(texts []string) ([]string, error) {
	s.fair = map[string]string{}
	queueCheck, err := scriptFiles.ReadFile("scripts/fair.lua")
	if err != nil {
		return nil, err
	}
	for file, sha := range map[string]string{"acquire": s.acquire, "share": s.share, "permit": s.permit, "multi": s.multi} {
		text, err := scriptText(file)
		if err != nil {
			return nil, err
		}
		text = slices.Concat(queueCheck, text)
		sum := sha1.Sum(text)
		s.fair[sha] = hex.EncodeToString(sum[:])
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts, nil
}

// scriptText is a script as the masters receive it.
func scriptText(file string) ([]byte, error) {
	text, err := scriptFiles.ReadFile("scripts/" + file + ".lua")
	if err != nil {
		return nil, err
	}
	for _, part := range []string{"forcerelease.lua", "shape.lua", "clock.lua"} { // each may include the next
		included, err := scriptFiles.ReadFile("scripts/" + part)
		if err != nil {
			return nil, err
		}
		text = bytes.Replace(text, []byte("-- include "+part+"\n"), included, 1)
	}
	return text, nil
}
