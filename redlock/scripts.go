package redlock

import (
	"bytes"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"redlockd/pool"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// scripts are the SHA1s by which the masters know our scripts. Every
// connection loads them before it is used, so EVALSHA is enough.
type scripts struct {
	acquire, release, releases, extend, unupgrade    string
	share, permit, multi, multiExtend                string
	nextID, readID, reseed, deleteID                 string
	enlist, keep, stepOut                            string
	fair                                             map[string]string // by the SHA1 of the script that does not look at the queue
	workTry, workUndo, workEnd, workExtend, workRead string
	look, note                                       string
	view, write, trim                                string
	within                                           [2]string // stand before and behind a library's script
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
		{"enlist", &s.enlist}, {"keep", &s.keep}, {"stepout", &s.stepOut},
		{"nextid", &s.nextID}, {"readid", &s.readID}, {"reseed", &s.reseed}, {"deleteid", &s.deleteID},
		{"worktry", &s.workTry}, {"workundo", &s.workUndo}, {"workend", &s.workEnd},
		{"workextend", &s.workExtend}, {"workread", &s.workRead},
		{"look", &s.look}, {"note", &s.note},
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
	within, err := scriptText("within")
	if err != nil {
		return nil, err
	}
	before, behind, _ := strings.Cut(withoutComments(string(within)), libraryPlace)
	s.within = [2]string{before, "\n" + behind}
	return s.loadFair(texts)
}

// libraryPlace is where within.lua has a library's script.
const libraryPlace = "-- the script\n"

// withoutComments is for what is sent each time.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") || line == libraryPlace {
			b.WriteString(line)
		}
	}
	return b.String()
}

// loadFair adds the lock scripts that look at the queue first.
func (s *scripts) loadFair(texts []string) ([]string, error) {
	s.fair = map[string]string{}
	look, err := scriptFiles.ReadFile("scripts/fair.lua")
	if err != nil {
		return nil, err
	}
	for file, sha := range map[string]string{"acquire": s.acquire, "share": s.share, "permit": s.permit, "multi": s.multi} {
		text, err := scriptText(file)
		if err != nil {
			return nil, err
		}
		text = append(broken(look), text...)
		sum := sha1.Sum(text)
		s.fair[sha] = hex.EncodeToString(sum[:])
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts, nil
}

// scriptText is a script as the masters get it.
func scriptText(file string) ([]byte, error) {
	text, err := scriptFiles.ReadFile("scripts/" + file + ".lua")
	if err != nil {
		return nil, err
	}
	for _, part := range []string{"letgo.lua", "shape.lua", "clock.lua"} { // each may include the next
		included, err := scriptFiles.ReadFile("scripts/" + part)
		if err != nil {
			return nil, err
		}
		text = bytes.Replace(text, []byte("-- include "+part+"\n"), included, 1)
	}
	return broken(text), nil
}

// broken is for the negative controls; it changes nothing in the product.
func broken(text []byte) []byte {
	for _, change := range []struct {
		rule    pool.Rule
		of, now string
	}{
		{pool.RuleShorten, "math.max(ends, E)", "E"},
		{pool.RuleShorten, "new > ends", "new ~= ends"},
		{pool.RuleUnpurged, "redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. digits(now))", ""},
		{pool.RuleCallerClock, "'(' .. digits(now)", "'(' .. ARGV[2]"},
		{pool.RuleCountedPermits, "    return said\n", "    if #said == 1 then return said end\n    slot, holder = digits(said[2]), nil\n"},
	} {
		if pool.Broken(change.rule) {
			text = bytes.ReplaceAll(text, []byte(change.of), []byte(change.now))
		}
	}
	return text
}
