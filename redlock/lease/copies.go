package lease

import (
	"strconv"

	"redlockd/pool"
	"redlockd/redlock/engine"
	"redlockd/redlock/scripts"
)

// copyKinds reads and writes the copies of all kinds, for extensions.
type copyKinds struct{ scripts *scripts.Set }

var _ heldKinds = copyKinds{}

// readCopy: a permit has its number and that of all.
func (copyKinds) readCopy(r pool.Reply) heldCopy {
	if r.Kind == pool.ReplyInt {
		return heldCopy{held: r.Int == 1}
	}
	switch n := engine.Numbers(r); {
	case len(n) == 0 || n[0] != 1:
		return heldCopy{}
	case len(n) == 3:
		return heldCopy{held: true, kind: Permits, detail: [2]int64{n[1], n[2]}}
	}
	return heldCopy{held: true, kind: Shared}
}

func (k copyKinds) writeCopy(is heldCopy, c *pool.Command, keys []string, token, end string) bool {
	s := k.scripts
	switch {
	case len(keys) > 1:
		c.Set("EVALSHA", s.Multi, strconv.Itoa(len(keys)))
		c.Args = append(append(c.Args, keys...), token, end, engine.Flag(is.kind == Shared))
	case is.kind == Shared:
		c.Set("EVALSHA", s.Share, "1", keys[0], token, end, "")
	case is.kind == Permits:
		c.Set("EVALSHA", s.Permit, "1", keys[0], token, end,
			strconv.FormatInt(is.detail[1], 10), strconv.FormatInt(is.detail[0], 10), engine.Flag(true))
	default:
		return false
	}
	return true
}
