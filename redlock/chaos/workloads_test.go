package chaos

// workloads_test.go: what clients want. A new workload is a file with a type
// and a row in the table.

import (
	"context"
	"io"
)

// workload is what some clients want, and what they must be told.
type workload interface {
	// work is the life of one client; it ends with the context.
	work(ctx context.Context, c *caller)
	// probe wants everything to be served again by the caller's daemon, and
	// leaves nothing behind.
	probe(c *caller) error
	// verdict judges what all clients were told; the tally says how much it was.
	verdict() (tally string, err error)
	// dump writes what they were told.
	dump(w io.Writer) error
}

// trade is a row of the table of workloads.
type trade struct {
	name    string
	clients int
	start   func(*run) workload
}

func locksTrade() trade   { return trade{"locks", 12, newLocks} }
func idsTrade() trade     { return trade{"ids", 4, newCounters} }
func worksTrade() trade   { return trade{"works", 6, newWorks} }
func foreignTrade() trade { return trade{"foreign", 3, newForeign} }

func waitingTrade() trade { return trade{"waiting", 8, newWaiting} }
func holdingTrade() trade { return trade{"holding", 6, newHolding} }
func fairTrade() trade    { return trade{"fair", 8, newFair} }
func readersTrade() trade { return trade{"readers", 4, newReaders} }
func permitsTrade() trade { return trade{"permits", 6, newPermits} }
func severalTrade() trade { return trade{"several", 4, newSeveral} }

// crowds are those of waits, holds and modes.
func crowds() []trade {
	return []trade{waitingTrade(), holdingTrade(), fairTrade(), readersTrade(), permitsTrade(), severalTrade()}
}

// trades are the workloads that every fault allows.
func trades() []trade { return []trade{locksTrade(), idsTrade(), worksTrade()} }
