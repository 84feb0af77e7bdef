package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// transcripts are the golden files with commands and their replies.
var transcripts = []string{"docs", "locks", "dropin", "connection", "cluster", "inspection", "admin", "errors", "users", "limits", "draining", "masters"}

func TestTranscripts(t *testing.T) {
	t.Run("play", func(t *testing.T) {
		t.Run("usage", func(t *testing.T) {
			t.Parallel()
			playUsage(t)
		})
		for _, name := range transcripts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				playBoth(t, name)
			})
		}
	})
	t.Run("codes", everyCodeIsShown)
	t.Run("logs", logMessages)
	t.Run("texts", textsNotShown) // last: it leaves out what the others show
}

// playBoth plays a transcript with each of its protocols, on a daemon of its own.
func playBoth(t *testing.T, name string) {
	s := readScript(t, name)
	protocols := s.protocols()
	played := make([][]string, len(protocols))
	for i, protocol := range protocols {
		played[i] = s.play(t, protocol)
	}
	compare(t, name, s.merge(protocols, played))
}

// Every command of COMMAND DOCS is sent in a transcript.
func TestTranscripts_HaveEveryCommand(t *testing.T) {
	var sent []string
	for _, name := range transcripts {
		for _, line := range readScript(t, name).lines {
			if m := commandLine.FindStringSubmatch(line); m != nil && strings.ContainsAny(m[2], ">&?") {
				words := strings.Fields(strings.ToLower(m[3]) + " -")
				sent = append(sent, words[0], words[0]+"|"+words[1])
			}
		}
	}
	replies := script{"commands", []string{"daemon --embedded 3", "> COMMAND DOCS"}}.play(t, "3")
	names := regexp.MustCompile(`"([a-z|_-]+)": \{\s*"summary"`).FindAllStringSubmatch(replies[1], -1)
	if len(names) < 80 {
		t.Errorf("COMMAND DOCS names %d commands", len(names))
	}
	for _, name := range names {
		if key := name[1]; !slices.Contains(sent, key) {
			t.Errorf("no transcript sends %s", strings.ToUpper(key))
		}
	}
}
