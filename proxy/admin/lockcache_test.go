package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// lasting is a lock of one holder.
func lasting(token redlock.Token, left time.Duration, fence redlock.Fence) *redlock.LockView {
	v := heldBy(token, fence)
	v.Left, v.Holders[0].Left = left, left
	return &v
}

func (b *lockCache) keys(q query) []string {
	if q.order == "" {
		q.order = "key"
	}
	return keysOf(b.list().find(q, everything).entries)
}

func TestLockCache_FindsByPiecesOfANameWhateverItsCase(t *testing.T) {
	b := newLockCache()
	for _, key := range []redlock.Key{"Invoices:2025", "invoices:2026", "orders:2026", "2026"} {
		b.put(key, lasting("t", time.Minute, 1), noon, true)
	}
	for search, want := range map[string]string{
		"": "2026 Invoices:2025 invoices:2026 orders:2026", "INVOICES": "Invoices:2025 invoices:2026", "2026": "2026 invoices:2026 orders:2026",
		"*2026": "2026 invoices:2026 orders:2026", "2026*": "2026", "i*2*6": "invoices:2026", "*": "2026 Invoices:2025 invoices:2026 orders:2026",
		"o*o": "", "orders:2026*2026": "",
	} {
		if got := strings.Join(b.keys(query{search: search}), " "); got != want {
			t.Errorf("%q finds %q, want %q", search, got, want)
		}
	}
}

func TestLockCache_SortsAndPages(t *testing.T) {
	b := newLockCache()
	for i := range 120 {
		v := lasting("t", time.Duration(200-i)*time.Second, redlock.Fence(noon.UnixMicro())-redlock.Fence(i*7%120))
		v.Waiters = i % 3
		b.put(redlock.Key(fmt.Sprintf("k%03d", i)), v, noon, true)
	}
	for order, want := range map[string][2]string{
		"key": {"k000", "k050"}, "left": {"k119", "k069"}, "held": {"k017", "k027"}, "waiting": {"k002", "k031"},
	} {
		first, second := b.keys(query{order: order}), b.keys(query{order: order, offset: 50})
		if len(first) != 50 || len(second) != 50 || first[0] != want[0] || second[0] != want[1] {
			t.Errorf("%s: %d from %s, then %d from %s, want %q", order, len(first), first[0], len(second), second[0], want)
		}
	}
	if last := b.keys(query{offset: 100}); len(last) != 20 {
		t.Errorf("the last page has %d", len(last))
	}
	if beyond := b.list().find(query{order: "key", offset: 500}, everything); len(beyond.entries) != 0 || beyond.matches != 120 {
		t.Errorf("beyond the end: %d of %d", len(beyond.entries), beyond.matches)
	}
}

func TestLockCache_RemovesUnvisitedAndExpiredKeys(t *testing.T) {
	b := newLockCache()
	b.put("gone", lasting("t", time.Minute, 1), noon, false)
	b.endPass()
	if !b.visited.needsVisit("gone") || !b.visited.needsVisit("new") {
		t.Error("a new walk wants to see everything again")
	}
	b.put("new", lasting("t", time.Second, 1), noon, false)
	if b.visited.needsVisit("new") {
		t.Error("it has been seen by this walk")
	}
	b.endPass()
	if got := b.keys(query{}); !slices.Equal(got, []string{"new"}) {
		t.Errorf("behind the walk: %q", got)
	}
	b.sweep(noon.Add(time.Second))
	if got := b.keys(query{}); len(got) != 1 {
		t.Error("it was swept out before its end")
	}
	b.sweep(noon.Add(time.Second + 1))
	if got := b.keys(query{}); len(got) != 0 {
		t.Errorf("ended: %q", got)
	}
}

func TestLockCache_AWalkKeepsTheDataOfASingleRead(t *testing.T) {
	b := newLockCache()
	b.put("k", lasting("one", time.Minute, 5), noon, true)
	b.put("k", lasting("one", time.Minute, 0), noon.Add(time.Second), false)
	if e := b.get("k"); e.fence != 5 || !e.since.Equal(noon) {
		t.Errorf("the same holder: fence %d, since %v", e.fence, e.since)
	}
	b.put("k", lasting("two", time.Minute, 0), noon.Add(time.Second), false)
	if e := b.get("k"); e.fence != 0 || e.since.Equal(noon) {
		t.Errorf("another holder: fence %d, since %v", e.fence, e.since)
	}
}

func TestLockCache_IsBounded(t *testing.T) {
	b := newLockCache()
	for i := range maxEntries {
		b.put(redlock.Key(fmt.Sprint(i)), lasting("t", time.Minute, 1), noon, false)
	}
	if b.visited.needsVisit("one more") || !b.list().full {
		t.Error("it wants more than there is room for, or does not say that it is full")
	}
	b.put("one more", lasting("t", time.Minute, 1), noon, false)
	if n := b.list().find(query{order: "key"}, everything).total; n != maxEntries {
		t.Errorf("%d entries", n)
	}
}

func TestShown_WritesOutWhatDoesNotShowItself(t *testing.T) {
	for text, want := range map[string]string{
		"invoices": "invoices", "<b>": "<b>", "größe 日本": "größe 日本", `a"b`: `a"b`,
		"a\nb": `"a\nb"`, "\xff": `"\xff"`, "safe\u202egnp": `"safe\u202egnp"`, `"quoted"`: `"\"quoted\""`, " lead": `" lead"`, "": "",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

// No holder is shown and no master can decide: that neither ends a lock nor makes one.
func TestLockCache_KeepsTheKnownStateWithoutADecision(t *testing.T) {
	b := newLockCache()
	b.put("known", lasting("t", time.Minute, 1), noon, true)
	undecided := redlock.LockView{State: redlock.LockUndecided}
	for _, key := range []redlock.Key{"known", "unknown"} {
		b.put(key, &undecided, noon, true)
	}
	found := b.list().find(query{order: "key"}, everything).entries
	if len(found) != 1 || found[0].key != "known" || !found[0].undecided || found[0].until != noon.Add(time.Minute) {
		t.Errorf("%d locks, want the known one, unsure: %+v", len(found), found)
	}
}
