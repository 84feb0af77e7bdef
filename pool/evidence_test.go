package pool

import (
	"testing"

	"redlockd/pool/admission"
)

func TestEvidence_DecidesWhichMasterMayBeBegun(t *testing.T) {
	o := Options{Group: "default", Masters: []Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	first := o.Configuration(1)
	mark := first.Mark()
	awaits := o
	awaits.AwaitBootstrap = true
	blank := func(name string) masterEvidence {
		return masterEvidence{name: name, carries: admission.Carried{Fresh: true}}
	}
	proved := func(name string) masterEvidence {
		return masterEvidence{name: name, connected: true, proves: true, hasProved: true,
			carries: admission.Carried{Fingerprint: "any", Mark: mark, Ours: true, Fresh: true}}
	}
	silent := func(name string) masterEvidence { return masterEvidence{name: name} }
	newly := proved("b")
	newly.hasProved = false
	late := blank("b")
	late.recently = true
	alsoLate := late
	alsoLate.name = "c"
	for name, c := range map[string]struct {
		masters []masterEvidence
		master  string
		options Options
		others  elsewhere
		next    *admission.Configuration
		may     bool
	}{
		"a quorum of others has proved it":        {[]masterEvidence{proved("a"), proved("b"), silent("c")}, "c", o, elsewhere{}, nil, true},
		"its own proof does not count":            {[]masterEvidence{proved("a"), silent("b"), proved("c")}, "c", o, elsewhere{}, nil, false},
		"one has not proved it for long":          {[]masterEvidence{proved("a"), newly, silent("c")}, "c", o, elsewhere{}, nil, false},
		"it has in another database":              {[]masterEvidence{proved("a"), newly, silent("c")}, "c", o, elsewhere{known: admission.Known{Mark: mark}, proved: map[string]bool{"b": true}}, nil, true},
		"of blank masters the first one":          {[]masterEvidence{blank("a"), blank("b"), blank("c")}, "a", o, elsewhere{}, nil, true},
		"of blank masters not the second one":     {[]masterEvidence{blank("a"), blank("b"), blank("c")}, "b", o, elsewhere{}, nil, false},
		"not beside one that does not answer":     {[]masterEvidence{blank("a"), blank("b"), silent("c")}, "a", o, elsewhere{}, nil, false},
		"not before bootstrap, if it is awaited":  {[]masterEvidence{blank("a"), blank("b"), blank("c")}, "a", awaits, elsewhere{}, nil, false},
		"but if all came back empty a moment ago": {[]masterEvidence{blank("a"), late, alsoLate}, "a", awaits, elsewhere{}, nil, true},
		"not if it was left behind":               {[]masterEvidence{blank("a"), blank("b"), blank("c")}, "a", o, elsewhere{}, o.Configuration(2), false},
	} {
		e := evidence{known: admission.Known{Mark: mark}, next: c.next, masters: c.masters}
		if refusal := e.mayNotBegin(c.master, c.others, &c.options, nil); (refusal == "") != c.may {
			t.Errorf("%s: %q", name, refusal)
		}
	}
}
