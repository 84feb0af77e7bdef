package conn

// smallSet is a set that most often has one member, as the subscribers of a channel do: a
// map for each channel took half of its memory. The zero value of T is no member.
type smallSet[T comparable] struct {
	first T
	more  map[T]struct{}
}

func (a *smallSet[T]) add(member T) {
	var none T
	if a.first == none || a.first == member {
		delete(a.more, member)
		a.first = member
		return
	}
	if a.more == nil {
		a.more = map[T]struct{}{}
	}
	a.more[member] = struct{}{}
}

// remove reports whether there is no member left.
func (a *smallSet[T]) remove(member T) bool {
	var none T
	if delete(a.more, member); a.first == member {
		a.first = none
	}
	return a.first == none && len(a.more) == 0
}

func (a *smallSet[T]) all(yield func(T) bool) {
	var none T
	if a.first != none && !yield(a.first) {
		return
	}
	for member := range a.more {
		if !yield(member) {
			return
		}
	}
}
