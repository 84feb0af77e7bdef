package checker

import (
	"strings"
	"testing"
)

// shr is a grant as a reader, per one of two permits.
func shr(token string, invoke, complete, validity int) CallRecord {
	e := acq(token, invoke, complete, validity)
	e.Shared = true
	return e
}

func per(token string, invoke, complete, validity int) CallRecord {
	e := acq(token, invoke, complete, validity)
	e.Limit = 2
	return e
}

type togetherHistory struct {
	name    string
	rules   string // initials as in badHistory; "" = nothing is wrong
	history History
}

func readersHistories() []togetherHistory {
	return []togetherHistory{
		{"readers together", "", History{shr("a", 0, 1, 100), shr("b", 2, 3, 100), shr("c", 4, 5, 10)}},
		{"readers, then a writer, then a reader", "", History{shr("a", 0, 1, 10), shr("b", 2, 3, 100), rel1("b", 20, 21), acq("c", 22, 23, 10), shr("d", 40, 41, 10)}},
		{"a writer while another token reads", "E", History{shr("a", 0, 1, 100), acq("b", 10, 11, 10)}},
		{"a writer while the longest of three reads", "E", History{shr("a", 0, 1, 10), shr("b", 0, 1, 100), shr("c", 0, 1, 20), acq("d", 50, 51, 10)}},
		{"a reader while another token writes", "E", History{acq("a", 0, 1, 100), shr("b", 10, 11, 10)}},
		{"two writers", "E", History{acq("a", 0, 1, 100), acq("b", 10, 11, 10)}},
		{"a writer behind a short writer inside a long reader", "EE", History{shr("a", 0, 1, 100), acq("a", 2, 3, 5), acq("b", 20, 21, 5), shr("c", 22, 23, 90)}},
		{"the only reader becomes the writer", "", History{shr("a", 0, 1, 100), acq("a", 10, 11, 100), rel1("a", 20, 21), shr("b", 22, 23, 10)}},
		{"a reader beside a token that became the writer", "E", History{shr("a", 0, 1, 100), acq("a", 10, 11, 100), shr("b", 20, 21, 10)}},
		{"the writer steps down and another reads", "", History{acq("a", 0, 1, 100), shr("a", 10, 11, 100), shr("b", 20, 21, 10)}},
		{"the writer's wish to step down is not answered", "", History{acq("a", 0, 1, 100), unknown(shr("a", 10, 20, 0)), shr("b", 12, 15, 10)}},
		{"stepped down, and another writes", "E", History{acq("a", 0, 1, 100), shr("a", 10, 11, 100), acq("b", 20, 21, 10)}},
		{"a reader's extend keeps the writer out", "E", History{shr("a", 0, 1, 10), ext("a", 5, 6, 100), acq("b", 50, 51, 10)}},
		{"a writer's extend keeps readers out", "E", History{acq("a", 0, 1, 10), ext("a", 5, 6, 100), shr("b", 50, 51, 10)}},
		{"an extend by no holder", "C", History{shr("a", 0, 1, 10), ext("b", 5, 6, 100)}},
		{"an extend although a writer had it", "C", History{shr("a", 0, 1, 10), acq("b", 20, 21, 10), ext("a", 40, 41, 10)}},
		{"an extend although a reader had it", "", History{shr("a", 0, 1, 10), shr("b", 20, 21, 10), ext("a", 40, 41, 10)}},
		{"released twice", "R", History{shr("a", 0, 1, 100), rel1("a", 10, 11), rel1("a", 20, 21)}},
		{"not held although it is", "R", History{shr("a", 0, 1, 100), rel0("a", 10, 11)}},
		{"readers with one fence", "F", History{asReader(fenced(7, "a", 0, 1, 100)), asReader(fenced(7, "b", 0, 1, 100))}},
		{"a reader's fence below that of the writer before", "F", History{fenced(9, "a", 0, 1, 10), asReader(fenced(7, "b", 20, 21, 100))}},
	}
}

func asReader(e CallRecord) CallRecord {
	e.Shared = true
	return e
}

func permitsHistories() []togetherHistory {
	return []togetherHistory{
		{"two of two", "", History{per("a", 0, 1, 100), per("b", 2, 3, 100)}},
		{"three of two", "E", History{per("a", 0, 1, 100), per("b", 2, 3, 100), per("c", 4, 5, 10)}},
		{"the third after a release", "", History{per("a", 0, 1, 100), per("b", 2, 3, 100), rel1("a", 4, 5), per("c", 6, 7, 10)}},
		{"the third at the very deadline", "", History{per("a", 0, 1, 9), per("b", 2, 3, 100), per("c", 4, 10, 10)}},
		{"the third after an extend", "E", History{per("a", 0, 1, 9), ext("a", 5, 6, 50), per("b", 2, 3, 100), per("c", 20, 21, 10)}},
		{"a repeat takes no second permit", "", History{per("a", 0, 1, 100), per("a", 10, 11, 100), per("b", 20, 21, 100)}},
		{"a permit beside a token that has the whole key", "E", History{acq("a", 0, 1, 100), per("b", 2, 3, 10)}},
		{"a permit after a token that had the whole key", "", History{acq("a", 0, 1, 100), rel1("a", 2, 3), per("b", 4, 5, 10)}},
		{"a third that was refused", "", History{per("a", 0, 1, 100), per("b", 2, 3, 100), no(per("c", 4, 5, 10))}},
	}
}

func TestCheckReaders_TellsWhatCanHaveHappened(t *testing.T) {
	checkAllTogether(t, readersHistories(), CheckReaders)
}

func TestCheckPermits_CountsHolders(t *testing.T) {
	checkAllTogether(t, permitsHistories(), CheckPermits)
}

func checkAllTogether(t *testing.T, histories []togetherHistory, check func(History) error) {
	for _, of := range histories {
		err := check(of.history)
		if of.rules == "" {
			if err != nil {
				t.Errorf("%s: %v", of.name, err)
			}
			continue
		}
		for _, initial := range of.rules {
			if err == nil || !strings.Contains(err.Error(), "checker: "+ruleOfInitial[initial]) {
				t.Errorf("%s: no %s among: %v", of.name, ruleOfInitial[initial], err)
			}
		}
	}
}
