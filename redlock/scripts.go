package redlock

import (
	"bytes"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"

	"redlockd/pool"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// scripts are the SHA1s by which the masters know our scripts. Every
// connection loads them before it is used, so EVALSHA is enough.
type scripts struct {
	acquire, release, extend                         string
	nextID, readID, reseed                           string
	workTry, workUndo, workEnd, workExtend, workRead string
}

// load fills in the SHA1s and returns the texts.
func (s *scripts) load() ([]string, error) {
	var texts []string
	for _, one := range []struct {
		file string
		sha  *string
	}{
		{"acquire", &s.acquire}, {"release", &s.release}, {"extend", &s.extend},
		{"nextid", &s.nextID}, {"readid", &s.readID}, {"reseed", &s.reseed},
		{"worktry", &s.workTry}, {"workundo", &s.workUndo}, {"workend", &s.workEnd},
		{"workextend", &s.workExtend}, {"workread", &s.workRead},
	} {
		text, err := scriptFiles.ReadFile("scripts/" + one.file + ".lua")
		if err != nil {
			return nil, fmt.Errorf("script %s: %w", one.file, err)
		}
		if pool.Broken(pool.RuleShorten) {
			text = shortening(text)
		}
		sum := sha1.Sum(text)
		*one.sha = hex.EncodeToString(sum[:])
		texts = append(texts, string(text))
	}
	return texts, nil
}

// shortening is for the negative controls: an extension that sets the expiry.
func shortening(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("math.max(ends, tonumber(ARGV[2]))"), []byte("tonumber(ARGV[2])"))
	return bytes.ReplaceAll(text, []byte("new > ends"), []byte("new ~= ends"))
}
