package sim

import (
	"fmt"
	"time"

	"redlockd/redlock"
)

// What the checker requires of the longest time of a hold:
//
//	longest    a holder that requests and extends its lock again and again, through any daemon, has it no
//	           longer than Scenario.MaxHold since it received the first grant

// maxHoldSlack is what the clocks of masters and daemons differ by.
const maxHoldSlack = 50 * time.Millisecond

// clings is one hold of a client: from the first grant to the end of the last validity.
type clings struct {
	key          string
	token        redlock.Token
	began, until time.Duration
}

// note notes a grant or an extension. When the validity was over, the next one begins a hold.
func (h *clings) note(c *baseClient, key string, token redlock.Token, until time.Duration) {
	w := c.world
	if h.key != key || h.token != token || h.until <= w.now {
		*h = clings{key: key, token: token, began: w.now}
	}
	h.until = max(h.until, until)
	if most := w.Scenario.MaxHold; most > 0 && h.until-h.began > most+maxHoldSlack {
		w.violate("longest", key, fmt.Sprintf("%v holds %s for %.3f ms", c, abbreviate(string(token)), ms(h.until-h.began)))
	}
}
