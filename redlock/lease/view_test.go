package lease

import (
	"testing"
	"time"
)

func TestAgreement_IsWhatAQuorumShowsAlike(t *testing.T) {
	a := View{Kind: "string", Value: "a", Left: 5 * time.Second}
	shorter := View{Kind: "string", Value: "a", Left: 2 * time.Second, Longest: 5 * time.Second}
	b, none := View{Kind: "string", Value: "b", Left: time.Second}, View{Kind: "none"}
	free := View{Kind: "none", Free: true}
	for _, c := range []struct {
		name    string
		seen    []View
		want    View
		decided bool
	}{
		{"three alike, the least of their times", []View{a, none, shorter, a}, shorter, true},
		{"two alike and one silent", []View{a, a, b, none}, none, false},
		{"two alike of five", []View{a, a, b, none, none}, none, true},
		{"three have nothing", []View{none, none, none}, free, true},
		{"two have nothing, one other", []View{none, none, b}, none, false},
		{"nobody has answered", nil, none, false},
	} {
		if got, decided := agreement(c.seen, 5, 3); decided != c.decided || decided && got != c.want {
			t.Errorf("%s: %+v, decided %v", c.name, got, decided)
		}
	}
}
