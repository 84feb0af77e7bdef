package embedded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scan takes one step of a walk.
func (c *client) scan(cursor string, options ...string) (next string, keys []string) {
	c.t.Helper()
	words := strings.Fields(c.say(append([]string{"SCAN", cursor}, options...)...))
	if n, err := strconv.ParseUint(words[0], 10, scanBits); err != nil {
		c.t.Fatalf("cursor %d: %v", n, err)
	}
	return words[0], words[1:]
}

// walk takes steps until the end, each through the next client; after each of them something
// else happens. It counts how often each key was returned.
func walk(t *testing.T, clients []*client, between func(), options ...string) map[string]int {
	t.Helper()
	returned := map[string]int{}
	cursor := "0"
	for step := range 10_000 {
		var keys []string
		cursor, keys = clients[step%len(clients)].scan(cursor, append(options, "COUNT", "50")...)
		if len(keys) > 50 {
			t.Fatalf("step %d returned %d keys, want about 50", step, len(keys))
		}
		for _, key := range keys {
			returned[key]++
		}
		if cursor == "0" {
			return returned
		}
		between()
	}
	t.Fatal("the walk does not end")
	return nil
}

func TestEmbedded_SCANMissesNoKeyThatStays(t *testing.T) {
	for name, connections := range map[string]int{"one connection": 1, "another connection for each step": 2} {
		t.Run(name, func(t *testing.T) {
			c, _ := newClient(t)
			clients := []*client{c, dial(t, c.master)}[:connections]
			db, random := c.master.Server().DB(0), rand.New(rand.NewPCG(1, 2))
			const stay = 1000
			for i := range stay {
				db.Set(fmt.Sprintf("%d-stays", i), "")
				db.Set(fmt.Sprintf("%d-passes", i), "")
			}
			byIndex, at := map[string]bool{}, 0 // what a walk returns whose cursor is an index
			returned := walk(t, clients, func() {
				sorted := db.Keys()
				for _, key := range sorted[min(at, len(sorted)):min(at+50, len(sorted))] {
					byIndex[key] = true
				}
				at += 50
				for range 100 {
					if key := fmt.Sprintf("%d-passes", random.IntN(2*stay)); !db.Del(key) && random.IntN(3) == 0 {
						db.Set(key, "")
					}
				}
			})
			missing, missedByIndex := 0, 0
			for i := range stay {
				key := fmt.Sprintf("%d-stays", i)
				if returned[key] != 1 {
					missing++
				}
				if !byIndex[key] {
					missedByIndex++
				}
			}
			if missing > 0 || missedByIndex == 0 {
				t.Errorf("of %d keys that stay, %d were not returned once; a walk by index missed %d, want some", stay, missing, missedByIndex)
			}
		})
	}
}

func TestEmbedded_SCANReturnsKeysOfOneHashTogether(t *testing.T) {
	var l scanList
	for i, hash := range []uint64{0, 0, 3, 7, 7, 7, 7, 9} {
		l.keys = append(l.keys, scanKey{hash, strconv.Itoa(i)})
	}
	cursor, pages := uint64(0), []string{}
	for range l.keys {
		names, next := l.page(cursor, 2)
		pages = append(pages, strings.Join(names, ""))
		if cursor = next; cursor == 0 {
			break
		}
	}
	if want := []string{"01", "23456", "7"}; !slices.Equal(pages, want) {
		t.Errorf("pages %q, want %q", pages, want)
	}
	if names, next := l.page(10, 2); len(names) != 0 || next != 0 {
		t.Errorf("after the last hash: %q, cursor %d", names, next)
	}
}

func TestEmbedded_SCANSelectsByDatabasePatternAndType(t *testing.T) {
	c, _ := newClient(t)
	for i := range 100 {
		c.say("SET", fmt.Sprintf("text-%d", i), "")
		c.say("HSET", fmt.Sprintf("map-%d", i), "field", "value")
	}
	nothing := func() {}
	for _, one := range []struct {
		want    int
		options string
	}{{200, ""}, {100, "MATCH text-*"}, {20, "match *-1?"}, {100, "TYPE hash"}, {1, "MATCH *-7 TYPE string"}, {0, "MATCH [] TYPE hash"}} {
		if got := walk(t, []*client{c}, nothing, strings.Fields(one.options)...); len(got) != one.want {
			t.Errorf("SCAN with %q returned %d keys, want %d", one.options, len(got), one.want)
		}
	}
	cursor, _ := c.scan("0")
	if _, keys := c.scan(cursor, "MATCH", "no-such-*"); len(keys) > 0 {
		t.Errorf("a step with another pattern returned %q", keys)
	}
	cursor, _ = c.scan("0")
	c.want("OK", "SELECT", "3")
	c.want("OK", "SET", "elsewhere", "")
	if _, keys := c.scan(cursor); len(keys) > 1 {
		t.Errorf("after SELECT a step returned %d keys of another database", len(keys))
	}
	if got := walk(t, []*client{c}, nothing); len(got) != 1 || got["elsewhere"] != 1 {
		t.Errorf("database 3 has %v, want one key", got)
	}
	c.want("0 elsewhere", "EVAL", "local r = redis.call('SCAN', '0', 'COUNT', '5') return {r[1], r[2][1]}", "0")
}

func TestEmbedded_SCANReportsWrongArguments(t *testing.T) {
	c, _ := newClient(t)
	for _, wrong := range []string{"SCAN", "SCAN x", "SCAN 0 COUNT", "SCAN 0 COUNT 0", "SCAN 0 COUNT -1", "SCAN 0 COUNT x", "SCAN 0 MATCH", "SCAN 0 COUNT 5 ODD 1"} {
		if got := c.say(strings.Fields(wrong)...); !strings.HasPrefix(got, "ERR") {
			t.Errorf("%s: %q, want an error", wrong, got)
		}
	}
}
