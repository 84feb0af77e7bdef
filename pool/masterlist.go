// Master list: the list of a daemon that follows a change.

package pool

import (
	"slices"

	"redlockd/pool/admission"
)

// mastersOf is the list of a configuration. A master that this daemon does not know is reached as its
// first one is.
func (o *Options) mastersOf(next *admission.Configuration) (list []Master) {
	for _, m := range next.Masters {
		i := slices.IndexFunc(o.Masters, func(own Master) bool { return own.Name == m.Name })
		if i >= 0 {
			m = o.Masters[i]
		} else {
			m = m.WithLoginOf(o.Masters[0])
		}
		list = append(list, m)
	}
	return list
}

// arrange is the new list in the order in which the most masters keep their place.
func arrange(former, masters []Master) []Master {
	list := make([]Master, len(masters))
	var rest []Master
	for _, m := range masters {
		if i := slices.Index(former, m); i >= 0 && i < len(list) {
			list[i] = m
		} else {
			rest = append(rest, m)
		}
	}
	for i := range list {
		if list[i].Name == "" {
			list[i], rest = rest[0], rest[1:]
		}
	}
	return list
}
