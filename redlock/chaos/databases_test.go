package chaos

// databases_test.go: the same clients in several databases, in each of which the same names are
// other locks. Each has a history of its own.

import (
	"context"
	"fmt"
)

type inDatabase struct {
	workload
	db int
}

// inDatabases has each trade once in each of so many databases.
func inDatabases(n int, some ...trade) (all []trade) {
	for db := range n {
		for _, one := range some {
			start := one.start
			one.name = fmt.Sprintf("%s of database %d", one.name, db)
			one.start = func(r *run) workload { return inDatabase{start(r), db} }
			all = append(all, one)
		}
	}
	return all
}

func (d inDatabase) work(ctx context.Context, c *caller) {
	c.db = d.db
	d.workload.work(ctx, c)
}

func (d inDatabase) probe(c *caller) error {
	c.leave()
	c.db = d.db
	defer func() {
		c.leave()
		c.db = 0
	}()
	return d.workload.probe(c)
}
