package sim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redlockd/pool"
)

// trace keeps the last events. It is kept only when a world is played
// again to see why a promise was violated.
type trace struct {
	world *World
	on    bool
	out   io.Writer
	lines []traceLine
}

type traceLine struct {
	key  string // "" = of interest for every key
	text string
}

// maxTraceLines bounds a trace.
const maxTraceLines = 20_000

func (t *trace) note(key, format string, args ...any) {
	if !t.on {
		return
	}
	text := fmt.Sprintf("%10.3fms ", float64(t.world.now)/float64(time.Millisecond)) + fmt.Sprintf(format, args...)
	fmt.Fprintln(t.out, text)
	if t.lines = append(t.lines, traceLine{key, text}); len(t.lines) > maxTraceLines {
		t.lines = slices.Delete(t.lines, 0, maxTraceLines/2)
	}
}

// command notes what a master executed.
func (t *trace) command(l *simLink, words []string, r pool.Reply) {
	if words[0] == "SCRIPT" || words[0] == "INFO" || words[0] == "CONFIG" {
		return
	}
	key := ""
	switch {
	case words[0] == "EVALSHA":
		key = words[3]
	case words[0] == "EVAL":
		words = append([]string{"ADMIT"}, words[3:]...)
	case words[0] == "TIME", words[0] == "ZSCORE", words[0] == "ZADD":
		key = "\x00" // too many to show
	case len(words) > 1:
		key = words[1]
	}
	sender := "foreign"
	if l.daemon != nil {
		sender = fmt.Sprintf("daemon %d", l.daemon.index)
	}
	short := make([]string, len(words))
	for i, word := range words {
		short[i] = abbreviate(word)
	}
	t.note(key, "%s/%d -> %s at %d: %s = %s", sender, l.id, l.server.name, l.server.Now, strings.Join(short, " "), show(r))
}

func abbreviate(word string) string {
	if len(word) > 60 {
		return word[:60] + "…"
	}
	if len(word) == 40 || len(word) == 27 { // SHA1s and tokens
		return word[:6]
	}
	return word
}

func show(r pool.Reply) string {
	switch r.Kind {
	case pool.ReplyNil:
		return "nil"
	case pool.ReplyInt:
		return fmt.Sprint(r.Int)
	case pool.ReplyError:
		return r.Err.Error()
	case pool.ReplyArray:
		var items []string
		for _, item := range r.Items {
			items = append(items, show(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return abbreviate(r.Str)
}

// about are the last events that concern a key.
func (t *trace) about(key string) []string {
	const enough = 60
	var out []string
	for i := len(t.lines) - 1; i >= 0 && len(out) < enough; i-- {
		if t.lines[i].key == "" || key == "" || strings.HasSuffix(t.lines[i].key, key) {
			out = append(out, t.lines[i].text)
		}
	}
	slices.Reverse(out)
	return out
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
