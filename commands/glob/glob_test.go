package glob

import (
	"strings"
	"testing"
)

func TestGlob_CoversWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"a", []string{"a"}, []string{"", "b", "aa", "ab"}},
		{"*", []string{"", "a", "a:b\x00\r\n\xff"}, nil},
		{"a:*", []string{"a:", "a:b", "a:b:c"}, []string{"a", "b:a:", "A:b"}},
		{"*:a", []string{":a", "b:a", "a:a:a"}, []string{"a", "b:ab", "b:a:"}},
		{"a*b*c", []string{"abc", "aabbcc", "a-b-c-bc"}, []string{"ab", "acb", "abcd", "xabc"}},
		{"a?c", []string{"abc", "a?c", "a\x00c"}, []string{"ac", "abbc"}},
		{"??", []string{"ab"}, []string{"a", "abc", ""}},
		{"*?*", []string{"a", "ab"}, []string{""}},
		{"a**", []string{"a", "ab"}, []string{"b"}},
		{`a\*`, []string{"a*"}, []string{"ab", "a", `a\*`}},
		{`*\?`, []string{"?", "a?"}, []string{"ab"}},
		{`a\[b*`, []string{"a[b", "a[bc"}, []string{"ab"}},
		{`?\\`, []string{`a\`}, []string{"a"}},
	} {
		g, err := New(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, name := range c.yes {
			if !g.Matches(name) {
				t.Errorf("%q does not cover %q", c.pattern, name)
			}
		}
		for _, name := range c.no {
			if g.Matches(name) {
				t.Errorf("%q covers %q", c.pattern, name)
			}
		}
	}
}

func TestGlob_RefusesUnknownSyntax(t *testing.T) {
	for pattern, part := range map[string]string{
		"": "is empty", "a[b]": "holds [", "*[b]": "holds [", `a\`: "ends in a backslash", `*\`: "ends in a backslash",
		"*" + strings.Repeat("a", 64): "more than 63 bytes behind its first wildcard",
	} {
		if _, err := New(pattern); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q", pattern, err, part)
		}
	}
	if _, err := New(strings.Repeat("p", 500) + "*" + strings.Repeat("a", 63)); err != nil {
		t.Errorf("what fits is refused: %v", err)
	}
}

// Patterns that take other matchers time without end: the loop of matches runs
// once for each byte of the name, so that this test ends at all.
func TestGlob_DoesNotBacktrack(t *testing.T) {
	g, err := New(strings.Repeat("a*", 63) + "b")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("a", 512)
	if g.Matches(name) || !g.Matches(name+"b") {
		t.Error("wrong verdict")
	}
}
