package commands

// Rows are those of the table, for tests from outside.
func (t *Table) Rows() []*Command { return t.rows }

// Route finds the row of a call, for tests from outside.
func (t *Table) Route(args []string) (*Command, error) { return t.route(args) }
