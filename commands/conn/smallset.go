package conn

// smallSet is a set that most often has one member, as the subscribers of a channel do: a
// map for each channel took half of its memory. The zero value of T is no member.
type smallSet[T comparable] struct {
	first T
	more  map[T]struct{}
}

func (s *smallSet[T]) add(member T) {
	var none T
	if s.first == none || s.first == member {
		delete(s.more, member)
		s.first = member
		return
	}
	if s.more == nil {
		s.more = map[T]struct{}{}
	}
	s.more[member] = struct{}{}
}

// remove reports whether there is no member left.
func (s *smallSet[T]) remove(member T) bool {
	var none T
	if delete(s.more, member); s.first == member {
		s.first = none
	}
	return s.first == none && len(s.more) == 0
}

func (s *smallSet[T]) all(yield func(T) bool) {
	var none T
	if s.first != none && !yield(s.first) {
		return
	}
	for member := range s.more {
		if !yield(member) {
			return
		}
	}
}
