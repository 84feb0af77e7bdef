package lease

import (
	"sync"
	"time"
)

// usedFences are the shared fences that this daemon has given, kept for as long as a seal that
// contains them can be under way.
type usedFences struct {
	mu                sync.Mutex
	current, previous map[int64]struct{}
	rotated           time.Duration
}

// reserve notes the fence and reports whether it was unused.
func (c *usedFences) reserve(fence int64, now, keep time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || now-c.rotated > keep {
		c.previous, c.current, c.rotated = c.current, map[int64]struct{}{}, now
	}
	_, recent := c.current[fence]
	_, earlier := c.previous[fence]
	c.current[fence] = struct{}{}
	return !recent && !earlier
}
