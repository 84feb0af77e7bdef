// Master list: the list of a daemon that follows a change.

package pool

import (
	"path"
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

// unnamed is the address of a master that would get the login of this daemon though no operator has named it: neither
// the list nor FollowTo. A record on the masters is no operator, whoever can write one on a quorum would get the password. "" = none.
func (o *Options) unnamed(next *admission.Configuration) string {
	for _, m := range o.mastersOf(next) {
		inList := func(own Master) bool { return own.Network == m.Network && own.Address == m.Address }
		allowed := func(pattern string) bool { ok, err := path.Match(pattern, m.Address); return ok && err == nil }
		if m.Password != "" && !slices.ContainsFunc(o.Masters, inList) && !slices.ContainsFunc(o.FollowTo, allowed) {
			return m.Address
		}
	}
	return ""
}

// ownList is the list in the daemon's settings, if it has followed a change to another one.
func (o *Options) ownList(now []Master) string {
	listed := func(m Master) bool {
		return slices.ContainsFunc(now, func(other Master) bool { return other.Name == m.Name })
	}
	if o.Embedded > 0 || len(o.Masters) == len(now) && !slices.ContainsFunc(o.Masters, func(m Master) bool { return !listed(m) }) {
		return ""
	}
	return o.Names(o.Configuration(0))
}

// Names lists the masters of a configuration as daemons with these options reach them, so that the list
// can be given to a daemon or a command.
func (o *Options) Names(c *admission.Configuration) string {
	reached := *c
	reached.Masters = o.mastersOf(c)
	return reached.Names()
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
