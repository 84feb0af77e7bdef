// Counters of what passed between this daemon and its masters.

package pool

// Counters count since the start of the daemon; they never go down.
type Counters struct {
	Flushes         int64              // round trips that carried at least one operation
	Commands        int64              // operations in them, seals not counted
	Seals           int64              // seals sent
	VoidSeals       int64              // flushes whose votes did not count …
	Void            [VoidReasons]int64 // … by VoidReason
	LateFlushes     int64              // flushes that a master executed after the master timeout
	LateReads       int64              // flushes executed in time whose answer this process read after the master timeout
	BreakerOpened   int64
	Dials           int64
	Admissions      int64 // connections that may vote
	NewIncarnations int64 // admissions that found no unbroken memory and began a new incarnation
	Panics          int64 // panics recovered; anything but 0 is a bug
	Invalidated     int64 // incarnations invalidated because the master's clock stepped, its memory was rolled back or it may have evicted keys
	StepsTolerated  int64 // steps of masters' clocks that were small enough to invalidate nothing
}

// Add adds what other lanes have counted.
func (c *Counters) Add(d Counters) {
	c.Flushes += d.Flushes
	c.Commands += d.Commands
	c.Seals += d.Seals
	c.VoidSeals += d.VoidSeals
	for i, n := range d.Void {
		c.Void[i] += n
	}
	c.LateFlushes += d.LateFlushes
	c.LateReads += d.LateReads
	c.BreakerOpened += d.BreakerOpened
	c.Dials += d.Dials
	c.Admissions += d.Admissions
	c.NewIncarnations += d.NewIncarnations
	c.Panics += d.Panics
	c.Invalidated += d.Invalidated
	c.StepsTolerated += d.StepsTolerated
}
