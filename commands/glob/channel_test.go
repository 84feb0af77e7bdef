package glob

import (
	"strings"
	"testing"
)

func TestChannelPattern_CoversWhatRedisCovers(t *testing.T) {
	long := "dlock:" + strings.Repeat("k", 500)
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{"", []string{""}, []string{"a"}},
		{"dlock:a", []string{"dlock:a"}, []string{"dlock:", "dlock:ab", "Dlock:a"}},
		{"*", []string{"", "a", "\x00\n"}, nil},
		{"a*b*c", []string{"abc", "axxbyyc", "abcbc"}, []string{"ab", "acb", "abcx"}},
		{"a**b", []string{"ab", "axb"}, []string{"a"}},
		{"?", []string{"a", "\xff"}, []string{"", "ab"}},
		{"[abc]x", []string{"ax", "cx"}, []string{"dx", "x", "[abc]x"}},
		{"[a-c0-9]", []string{"b", "5"}, []string{"d", "-"}},
		{"[c-a]", []string{"b"}, []string{"d"}},
		{"[^a-c]", []string{"d", "^"}, []string{"a", "b", ""}},
		{"[a^]", []string{"a", "^"}, []string{"b"}},
		{`[\]x]`, []string{"]", "x"}, []string{`\`}},
		{"[]", nil, []string{"", "]", "["}},
		{"[^]", []string{"a", "]"}, []string{""}},
		{"[ab", []string{"a", "b"}, []string{"ab", "["}},
		{"x[a-", []string{"xa", "x-"}, []string{"xb"}},
		{`\*\?\[`, []string{"*?["}, []string{"aa["}},
		{`a\`, []string{`a\`}, []string{"a"}},
		{`*\`, []string{`\`, `x\`}, []string{"x"}},
		{long + "*", []string{long, long + "x"}, []string{"dlock:k"}},
	} {
		g, err := NewChannel(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
		}
		for _, name := range c.yes {
			if !g.Matches(name) {
				t.Errorf("%q does not cover %q", c.pattern, name)
			}
		}
		for _, name := range c.not {
			if g.Matches(name) {
				t.Errorf("%q covers %q", c.pattern, name)
			}
		}
	}
}
