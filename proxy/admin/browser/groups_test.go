package browser

// groups_test.go tests the page of a daemon with two groups of masters.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"redlockd/pool/faulty"
	"redlockd/redlock/slots"
)

// twoGroups is a scene with the groups g1 and g2, which have half of the slots each.
func twoGroups(t *testing.T) *scene {
	t.Helper()
	var text strings.Builder
	servers := faulty.StartGroup(t, 6)
	for i, ranges := range []string{"0-8191", "8192-16383"} {
		fmt.Fprintf(&text, "[[group]]\nname = \"g%d\"\nslots = %q\nmasters = %q\n", i+1, ranges, strings.Join(masters(fmt.Sprintf("m%d", i+1), servers[3*i:3*i+3]), ","))
	}
	path := filepath.Join(t.TempDir(), "redlockd.toml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return startScene(t, servers, "--config="+path)
}

// keyOf returns a key of group 1 or 2 that begins with a text.
func keyOf(group int, text string) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint(text, i); slots.Of(key)/(slots.Count/2) == group-1 {
			return key
		}
	}
}

func TestPage_ShowsOneGroupOrAll(t *testing.T) {
	s := twoGroups(t)
	c := s.client(t, "worker-7")
	var held [3]string // by group
	for group := 1; group <= 2; group++ {
		held[group] = keyOf(group, "orders:")
		lock(t, c, held[group])
		if err := s.client(t, "waiter").Send("DLOCK", held[group], "1000", "WAIT", "60000"); err != nil {
			t.Fatal(err)
		}
	}
	v := s.open(t, "operator")
	shows := func(masters int, keys ...string) {
		t.Helper()
		want := quote(strings.Join(keys, " "))
		v.until(fmt.Sprintf("%d masters are there", masters), fmt.Sprintf(`document.querySelectorAll("#masters tr").length === %d`, masters))
		for _, list := range []string{"locks", "waiters"} {
			v.until(list+" of "+want, `[...document.querySelectorAll("#`+list+` tr")].map(r => r.children[0].textContent).sort().join(" ") === `+want)
		}
	}
	choose := func(group string) {
		t.Helper()
		v.run(chromedp.Evaluate(`{ const g = document.getElementById("group"); g.value = "`+group+`"; g.dispatchEvent(new Event("change")); }`, nil))
	}
	pictures := func(name string) {
		t.Helper()
		for _, width := range []int64{390, 1280} {
			v.shoot(fmt.Sprintf("groups-%d-%s", width, name), width, map[int64]int64{390: 1600, 1280: 1000}[width])
			v.wellLaidOut(fmt.Sprintf("%s at %d", name, width))
			if seen := eval[bool](v, `document.getElementById("group").getBoundingClientRect().width > 0`); !seen {
				t.Errorf("at %d the groups cannot be chosen", width)
			}
		}
	}
	both := []string{held[1], held[2]}
	if both[0] > both[1] {
		both[0], both[1] = both[1], both[0]
	}
	shows(6, both...)
	pictures("all")
	for group := 1; group <= 2; group++ {
		choose(fmt.Sprint("g", group))
		shows(3, held[group])
		own, other := keyOf(group, "event:"), keyOf(3-group, "event:")
		do(t, c, "DUNLOCK", other, lock(t, c, other)) // before the other event
		do(t, c, "DUNLOCK", own, lock(t, c, own))
		v.until("its events are there", `[...document.querySelectorAll("#events tr")].filter(r => r.children[2].textContent === `+quote(own)+`).length >= 2`)
		if n := eval[int](v, `[...document.querySelectorAll("#events tr")].filter(r => r.children[2].textContent === `+quote(other)+`).length`); n > 0 {
			t.Errorf("group %d: %d events of the other group", group, n)
		}
	}
	pictures("one")
	choose("")
	shows(6, both...)
	v.clean(s.url)
}
