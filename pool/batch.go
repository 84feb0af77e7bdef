package pool

// Batch collects operations so that one lock and one wake-up per master serve
// all of them. The zero value is ready; a Batch belongs to one goroutine.
type Batch struct {
	group *Group
	ops   []Operation
}

// Add appends an operation; operations collected for another group are sent first.
func (b *Batch) Add(g *Group, op Operation) {
	if b.group != g {
		b.Send()
		b.group = g
	}
	b.ops = append(b.ops, op)
}

// Send queues everything added so far on the masters and empties the batch.
func (b *Batch) Send() {
	if len(b.ops) == 0 {
		return
	}
	b.group.send(b.ops)
	clear(b.ops)
	b.ops = b.ops[:0]
}
