package due

import "time"

// Item is due at a moment, and stores its index in the queue.
type Item interface {
	DueAt() time.Duration
	SetIndex(index int) // -1 = it has left
}

// Queue is a heap; the item that is due next comes first.
type Queue[T Item] []T

func (q Queue[T]) Len() int           { return len(q) }
func (q Queue[T]) Less(i, j int) bool { return q[i].DueAt() < q[j].DueAt() }
func (q Queue[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].SetIndex(i)
	q[j].SetIndex(j)
}

func (q *Queue[T]) Push(x any) {
	one := x.(T)
	one.SetIndex(len(*q))
	*q = append(*q, one)
}

func (q *Queue[T]) Pop() any {
	var none T
	last := len(*q) - 1
	one := (*q)[last]
	(*q)[last] = none
	*q = (*q)[:last]
	one.SetIndex(-1)
	return one
}
