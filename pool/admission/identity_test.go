package admission

import (
	"testing"
	"time"
)

func TestIdentity_ReadsWhatTheAdmissionScriptWrites(t *testing.T) {
	l, err := ParseIdentity("abc 0123 1700000000000000 1 format=v1/group=a b/db=0")
	if err != nil || l.RunID != "abc" || l.ID != "0123" || l.Base != 1_700_000_000_000_000 || !l.Durable {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := ParseIdentity("abc 0123 0 0 print"); err != nil || l.Durable || l.Base != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := ParseIdentity("abc:17 0123 0 0 print"); err != nil || l.RunID != "abc" || l.Evicted != "17" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{"", "retired", "a b c d", "a b c d e", "a b 1.5 0 e", "a b 99999999999999999999 0 e"} {
		if l, err := ParseIdentity(bad); err == nil {
			t.Errorf("ParseIdentity(%q) = %+v, want an error", bad, l)
		}
	}
}

func TestIdentity_AMemoryVotesOnceItIsOldEnough(t *testing.T) {
	l := &Incarnation{Base: 1_000_000}
	for us, want := range map[int64]bool{1_000_000: false, 2_999_999: false, 3_000_000: true, 3_000_001: true} {
		if got := l.MayVote(us, 2*time.Second); got != want {
			t.Errorf("at %d: %v, want %v", us, got, want)
		}
	}
}
