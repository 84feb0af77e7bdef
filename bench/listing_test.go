package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestListing_MeasuresCallersWithAndWithoutAWalkOverEveryLock(t *testing.T) {
	shared := &testbed{dir: t.TempDir(), binary: binary, masters: make([]*master, 3), warnings: io.Discard}
	f, err := beside(700, 4, openPaced)(t.Context(), shared, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []figure{pairsWithout, pairsBeside, withoutP50, withoutP99, besideP50, besideP99, wholeWalk} {
		if f[name] <= 0 {
			t.Errorf("%s: %g", name, f[name])
		}
	}
}

func TestWalker_FailsWhenALockIsMissing(t *testing.T) {
	w := newWalker(nil, 3)
	w.listed[0], w.listed[2] = true, true
	if err := w.finish(); err == nil || !strings.Contains(err.Error(), "missed 1 ") || w.complete != 0 {
		t.Errorf("%d walks are complete: %v", w.complete, err)
	}
	w.listed[1] = true
	if err := w.finish(); err != nil || w.complete != 1 || w.listed[0] {
		t.Errorf("%d walks are complete, the next one has begun with %v: %v", w.complete, w.listed, err)
	}
}
