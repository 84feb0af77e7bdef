// Package due orders items by the time at which they are due, for container/heap.
package due
