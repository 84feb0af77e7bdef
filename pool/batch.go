// Batch: operations that a goroutine sends together.

package pool

import "slices"

// Batch collects operations so that one lock and one wake-up per master serve
// all of them. The zero value is ready; a Batch belongs to one goroutine.
type Batch struct {
	group  *Group
	ops    []Operation
	others []Batch // for further groups; usually there are none
}

// Add appends an operation. Those for one group keep their order.
func (b *Batch) Add(g *Group, op Operation) {
	if b.group != g && len(b.ops) > 0 {
		i := slices.IndexFunc(b.others, func(other Batch) bool { return other.group == g })
		if i < 0 {
			i, b.others = len(b.others), append(b.others, Batch{group: g})
		}
		b.others[i].ops = append(b.others[i].ops, op)
		return
	}
	b.group = g
	b.ops = append(b.ops, op)
}

// Send queues everything added so far on the masters and empties the batch.
func (b *Batch) Send() {
	if len(b.ops) == 0 {
		return
	}
	others := b.others
	b.others = nil
	b.group.send(b.ops)
	clear(b.ops)
	b.ops = b.ops[:0]
	for i := range others {
		others[i].Send()
	}
}
