package commands_test

import (
	"slices"
	"testing"

	"redlockd/redlock"
)

const nextIDSyntax = "DNEXTID name [COUNT n]"

func TestDNEXTID_AnswersTheFirstOfTheIDs(t *testing.T) {
	c := newWorkConversation(t)
	c.ids.first = 9223372036854775807
	c.transcript(`
		> DNEXTID orders
		< :9223372036854775807
		> SELECT 3
		< +OK
		> dnextid "or\r\n\x00ders" count 1000000
		< :9223372036854775807
	`)
	want := []redlock.IDRequest{{Name: "orders", Count: 1}, {DB: 3, Name: "or\r\n\x00ders", Count: 1_000_000}}
	if !slices.Equal(c.ids.asked, want) {
		t.Errorf("got %+v\nwant %+v", c.ids.asked, want)
	}
}

func TestDNEXTID_ReportsACallersMistakes(t *testing.T) {
	c := newWorkConversation(t)
	c.refuses(nextIDSyntax, [][2]string{
		{"DNEXTID", "wrong number of arguments for 'dnextid' command"},
		{"DNEXTID a COUNT 1 2", "wrong number of arguments for 'dnextid' command"},
		{`DNEXTID ""`, "invalid counter name: 0 bytes, allowed are 1 to 512"},
		{"DNEXTID " + x(513), "invalid counter name: 513 bytes, allowed are 1 to 512"},
		{"DNEXTID redlockd:seal", "invalid counter name 'redlockd:seal': names beginning with 'redlockd:' are reserved"},
		{"DNEXTID a COUNT", "option COUNT needs a value"},
		{"DNEXTID a TIMES 5", "unknown option 'TIMES'"},
	})
	for _, count := range []string{"0", "-1", "1000001", "1e3", "18446744073709551616", "9223372036854775808", "+1", "01", "1.0", "٣", " 1", "1 "} {
		got := c.words("DNEXTID", "a", "COUNT", count)
		if want := "-ERR COUNT '" + count + "' is not an integer or out of range, allowed are 1 to 1000000; syntax: " + nextIDSyntax; got != want {
			t.Errorf(" got %s\nwant %s", got, want)
		}
	}
	if len(c.ids.asked) > 0 {
		t.Errorf("a mistaken request reached the masters: %+v", c.ids.asked)
	}
}

func TestDNEXTID_MirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newWorkConversation(t)
	c.mirrors("DNEXTID orders", func(err error) { c.ids.err = err })
}
