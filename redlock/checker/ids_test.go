package checker

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func ids(first, count int64, invoke, complete int) Range {
	return Range{Name: "n", First: first, Count: count, Invoke: ms(invoke), Complete: ms(complete)}
}

func TestCheckIDs_AcceptsDistinctRisingRanges(t *testing.T) {
	other := ids(1, 10, 0, 1)
	other.Name = "m"
	for name, ranges := range map[string][]Range{
		"none":                            nil,
		"rising with gaps":                {ids(1, 3, 0, 1), ids(10, 1, 2, 3), ids(11, 5, 4, 5)},
		"adjacent":                        {ids(1, 3, 0, 1), ids(4, 3, 2, 3)},
		"overlapping requests, any order": {ids(4, 3, 0, 10), ids(1, 3, 5, 15), ids(7, 1, 16, 17)},
		"touching requests, any order":    {ids(4, 3, 0, 10), ids(1, 3, 10, 15)},
		"two counters":                    {ids(1, 10, 0, 1), other},
		"the last id there is":            {ids(math.MaxInt64, 1, 0, 1)},
	} {
		if err := CheckIDs(ranges); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckIDs_RejectsRepeatsAndStepsBack(t *testing.T) {
	for name, bad := range map[string]struct {
		ranges []Range
		want   string
	}{
		"the same id":                   {[]Range{ids(5, 1, 0, 9), ids(5, 1, 1, 8)}, "id 5 was given out twice"},
		"ranges that overlap":           {[]Range{ids(5, 10, 0, 9), ids(14, 10, 1, 8)}, "id 14 was given out twice"},
		"a range inside an older one":   {[]Range{ids(1, 100, 0, 9), ids(2, 1, 0, 9), ids(50, 1, 0, 9)}, "id 50 was given out twice"},
		"a step back":                   {[]Range{ids(5, 1, 0, 1), ids(4, 1, 2, 3)}, "id 4 was requested after id 5 had been answered"},
		"a step back two answers later": {[]Range{ids(5, 3, 0, 1), ids(9, 1, 2, 3), ids(8, 1, 4, 5)}, "id 8 was requested after id 9"},
		"a step back behind the higher of two that overlapped": {[]Range{ids(20, 1, 0, 1), ids(8, 1, 0, 5), ids(10, 1, 20, 21)}, "id 10 was requested after id 20"},
		"a step back behind a slow call":                       {[]Range{ids(9, 1, 0, 1), ids(10, 1, 0, 50), ids(8, 1, 2, 3)}, "id 8 was requested after id 9"},
	} {
		err := CheckIDs(bad.ranges)
		var v *Violation
		if !errors.As(err, &v) || v.Rule != ruleIDs || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: verdict %v, want a violation with %q", name, err, bad.want)
		}
	}
}

func TestCheckIDs_RejectsAnImpossibleRange(t *testing.T) {
	for _, bad := range []Range{ids(1, 0, 0, 1), ids(math.MaxInt64, 2, 0, 1), ids(1, 1, 2, 1), ids(1, 1, -1, 1)} {
		if err := CheckIDs([]Range{ids(1, 1, 0, 1), bad}); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "range 1") {
			t.Errorf("%v: verdict %v, want ErrMalformed that names range 1", &bad, err)
		}
	}
}
