package chaos

// workloads_test.go: the workloads of clients. A new workload is a file with a type
// and a row in the table.

import (
	"context"
	"io"
)

// workload is what some clients request, and what their replies must be.
type workload interface {
	// work is the life of one client; it ends with the context.
	work(ctx context.Context, c *caller)
	// probe wants everything to be served again by the caller's daemon, and
	// leaves nothing behind.
	probe(c *caller) error
	// verdict checks the replies to all clients; the tally counts them.
	verdict() (tally string, err error)
	// dump writes their replies.
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
	return []trade{waitingTrade(), holdingTrade(), fairTrade(), readersTrade(), permitsTrade(), severalTrade(), delaysTrade(), levelsTrade()}
}

// trades are the workloads that every fault allows.
func trades() []trade { return []trade{locksTrade(), idsTrade(), worksTrade()} }
