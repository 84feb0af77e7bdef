package engine

import "testing"

func TestToken_ShowsTheDaemonThatGeneratedIt(t *testing.T) {
	t.Parallel()
	tokens, seen := TokensOf("host/1"), map[Token]bool{}
	for range 1000 {
		one := tokens()
		level := LevelOf("owner-7", one)
		if seen[one] || len(one) != 27 || !one.GrantedBy("host/1") || !level.GrantedBy("host/1") || one.GrantedBy("host/2") {
			t.Fatalf("%q was made, or is its daemon's: %v", one, one.GrantedBy("host/1"))
		}
		seen[one] = true
	}
	for _, other := range []Token{"", "worker-3", NewToken(), tokens()[:26], tokens() + "x", "#" + tokens(), "===========================", "a chosen value of 27 bytes:"} {
		if other.GrantedBy("host/1") {
			t.Errorf("%q counts as generated", other)
		}
	}
}
