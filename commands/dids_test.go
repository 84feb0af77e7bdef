package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlockd/redlock"
)

func counterOf(name redlock.Key, masters ...redlock.CounterOnMaster) redlock.Counter {
	return redlock.Counter{Name: name, Masters: masters}
}

func someCounters(n int) map[redlock.Key]redlock.Counter {
	all := make(map[redlock.Key]redlock.Counter)
	for i := range n {
		name := redlock.Key(fmt.Sprintf("counter-%04d", i))
		all[name] = counterOf(name, redlock.CounterOnMaster{Master: "a", Known: true, Value: int64(i), Trusted: true})
	}
	return all
}

func TestDIDS_ShowsACounterOnEveryMaster(t *testing.T) {
	c := newWorkConversation(t)
	c.ids.counters = map[redlock.Key]redlock.Counter{
		"orders": counterOf("orders",
			redlock.CounterOnMaster{Master: "a", Known: true, Value: 41, Trusted: true},
			redlock.CounterOnMaster{Master: "b", Known: true, Value: 40},
			redlock.CounterOnMaster{Master: "c", Value: 7, Trusted: true}),
	}
	c.transcript(`
		> DIDS orders
		< {"orders" [["a" :41 :1] ["b" :40 :0] ["c" nil :0]]}
	`)
	if len(c.ids.listed) > 0 {
		t.Error("all counters were looked for although one was named")
	}
}

func TestDIDS_ListsAllCountersInOrder(t *testing.T) {
	c := newWorkConversation(t)
	c.ids.counters = someCounters(3)
	c.transcript(`
		> SELECT 5
		< +OK
		> DIDS
		< {"counter-0000" [["a" :0 :1]] "counter-0001" [["a" :1 :1]] "counter-0002" [["a" :2 :1]]}
	`)
	if !slices.Equal(c.ids.listed, []int{5}) {
		t.Errorf("looked in databases %v", c.ids.listed)
	}
	c.ids.counters = nil
	c.transcript(`
		> DIDS
		< {}
	`)
}

func TestDIDS_ReadsAFewCountersAtATimeAndAnswersInTheOrderOfNames(t *testing.T) {
	c := newWorkConversation(t)
	const all = 3*countersAtOnce + 1
	c.ids.counters, c.ids.held = someCounters(all), true
	sink := c.start("DIDS")
	for answered := 0; answered < all; answered++ {
		if inFlight := len(c.ids.reading); inFlight != min(countersAtOnce, all-answered) {
			t.Fatalf("%d counters are asked for at once after %d answers", inFlight, answered)
		}
		if sink.answers > 0 {
			t.Fatalf("answered after %d of %d counters", answered, all)
		}
		newest := len(c.ids.reading) - 1
		answer := c.ids.reading[newest]
		c.ids.reading = c.ids.reading[:newest]
		answer()
	}
	r := sink.read(t)
	if len(r.Items) != 2*all {
		t.Fatalf("%d items", len(r.Items))
	}
	for i := range all {
		if got, want := show(r.Items[2*i])+show(r.Items[2*i+1]), fmt.Sprintf(`"counter-%04d"[["a" :%d :1]]`, i, i); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDIDS_RefusesMoreCountersThanItCanShow(t *testing.T) {
	c := newWorkConversation(t)
	c.ids.counters = someCounters(maxListedCounters)
	if got := c.say("DIDS"); !strings.HasPrefix(got, "{") {
		t.Errorf("%.100s", got)
	}
	c.ids.counters = someCounters(maxListedCounters + 1)
	c.ids.read = nil
	want := "-ERR there are 1001 counters or more and one listing has room for 1000; name one: DIDS name"
	if got := c.say("DIDS"); got != want || len(c.ids.read) > 0 {
		t.Errorf("got %s after reading %d counters", got, len(c.ids.read))
	}
}

func TestDIDS_MirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newWorkConversation(t)
	c.mirrors("DIDS", func(err error) { c.ids.err = err })
	c.mirrors("DIDS orders", func(err error) { c.ids.err = err })
}

func TestDIDS_FailsAsAWholeWhenOneCounterCannotBeRead(t *testing.T) {
	c := newWorkConversation(t)
	c.ids.counters, c.ids.held = someCounters(2), true
	sink := c.start("DIDS")
	c.ids.err = errors.New("unforeseen")
	c.ids.reading[0]()
	c.ids.err = nil
	c.ids.reading[1]()
	if got := show(sink.read(t)); got != "-ERR unforeseen" {
		t.Error(got)
	}
}

func TestDIDS_RefusesANameThatCannotBe(t *testing.T) {
	c := newWorkConversation(t)
	c.refuses("DIDS [name]", [][2]string{
		{`DIDS ""`, "invalid counter name: 0 bytes, allowed are 1 to 512"},
		{"DIDS a b", "wrong number of arguments for 'dids' command"},
	})
}

func TestDIDRESEED_InstallsTheOperatorsValue(t *testing.T) {
	c := newWorkConversation(t)
	c.transcript(`
		> DIDRESEED orders 0
		< +OK
		> SELECT 2
		< +OK
		> DIDRESEED orders 9223372036854775807
		< +OK
	`)
	if got, want := fmt.Sprint(c.ids.reseeded), "[0 orders 0 2 orders 9223372036854775807]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDIDRESEED_ReportsACallersMistakes(t *testing.T) {
	c := newWorkConversation(t)
	c.refuses("DIDRESEED name value", [][2]string{
		{"DIDRESEED orders", "wrong number of arguments for 'didreseed' command"},
		{"DIDRESEED redlockd:id:orders 5", "invalid counter name 'redlockd:id:orders': names beginning with 'redlockd:' are reserved"},
		{"DIDRESEED orders -1", "value '-1' is not an integer or out of range, allowed are 0 to 9223372036854775807"},
		{"DIDRESEED orders 9223372036854775808", "value '9223372036854775808' is not an integer or out of range, allowed are 0 to 9223372036854775807"},
		{"DIDRESEED orders 1e3", "value '1e3' is not an integer or out of range, allowed are 0 to 9223372036854775807"},
	})
	if len(c.ids.reseeded) > 0 {
		t.Errorf("installed %v", c.ids.reseeded)
	}
}

func TestDIDRESEED_MirrorsTheOutcomeOfTheMasters(t *testing.T) {
	c := newWorkConversation(t)
	c.mirrors("DIDRESEED orders 5", func(err error) { c.ids.err = err })
}

func TestDIDSDEL_DeletesWhatIsConfirmedAndShowsEachMaster(t *testing.T) {
	c := newWorkConversation(t)
	c.transcript(`
		> DIDS DEL orders CONFIRM 41
		< [["a" "deleted"] ["b" "unanswered"]]
		> SELECT 2
		< +OK
		> dids del orders confirm 9223372036854775807
		< [["a" "deleted"] ["b" "unanswered"]]
	`)
	if got, want := fmt.Sprint(c.ids.deleted), "[0 orders 41 2 orders 9223372036854775807]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.ids.deleted = nil
	c.refuses("DIDS DEL name CONFIRM value", [][2]string{
		{"DIDS DEL orders", "wrong number of arguments for 'dids|del' command"},
		{"DIDS DEL orders VALUE 41", "'VALUE' stands where CONFIRM is expected, and behind it the counter's value (see DIDS orders): what is deleted begins at 1 again"},
		{"DIDS DEL orders CONFIRM x", "CONFIRM 'x' is not an integer or out of range, allowed are 0 to 9223372036854775807"},
		{"DIDS DEL redlockd:x CONFIRM 1", "invalid counter name 'redlockd:x': names beginning with 'redlockd:' are reserved"},
	})
	if len(c.ids.deleted) > 0 {
		t.Errorf("deleted %v", c.ids.deleted)
	}
	c.mirrors("DIDS DEL orders CONFIRM 5", func(err error) { c.ids.err = err })
}

// A counter may have the name of the subcommand, and of HELP.
func TestDIDS_ShowsCountersWhoseNamesAreWords(t *testing.T) {
	c := newWorkConversation(t)
	c.say("DIDS DEL")
	c.say("DIDS help")
	if got := fmt.Sprint(c.ids.read); got != "[DEL help]" {
		t.Errorf("read %s", got)
	}
}
