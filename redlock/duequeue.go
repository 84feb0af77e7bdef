package redlock

import "time"

// dueQueue orders items by the time at which they are due, for container/heap.

// dueItem is due at a moment, and stores its index in the queue.
type dueItem interface {
	dueAt() time.Duration
	setIndex(index int) // -1 = it has left
}

// dueQueue is a heap; the item that is due next comes first.
type dueQueue[T dueItem] []T

func (q dueQueue[T]) Len() int           { return len(q) }
func (q dueQueue[T]) Less(i, j int) bool { return q[i].dueAt() < q[j].dueAt() }
func (q dueQueue[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].setIndex(i)
	q[j].setIndex(j)
}

func (q *dueQueue[T]) Push(x any) {
	one := x.(T)
	one.setIndex(len(*q))
	*q = append(*q, one)
}

func (q *dueQueue[T]) Pop() any {
	var none T
	last := len(*q) - 1
	one := (*q)[last]
	(*q)[last] = none
	*q = (*q)[:last]
	one.setIndex(-1)
	return one
}
