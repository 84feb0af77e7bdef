// nextIDs serves pottery's NextID as DNEXTID. The library reads the current id with GET, and sets
// the next one with a script, only if the counter is below it. Here GET reserves an id and replies
// the one before it, and the script replies an id that was reserved. So each id is given once, and
// clients never compete for one.

package rediscompat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
	"redlockd/redlock"
)

const (
	nextIDScript = "556429c2d8baca516a475ebb22d380cbccae7313" // SHA1, in all versions of pottery since 1.4
	nextIDPrefix = "nextid:"                                  // of all names that it is run for

	// Beyond these, what was noted first is dropped. Its client tries again.
	maxNextIDs     = 1024 // counters
	maxReservedIDs = 64   // of a counter
)

type nextIDs struct {
	ids   commands.IDs
	stats *dropin.Stats

	mu       sync.Mutex
	names    []access.HeldKey
	reserved map[access.HeldKey]*[]int64
}

// serves reports whether the script was run for the name. Any other name is a lock.
func (n *nextIDs) serves(at access.HeldKey) bool {
	if !strings.HasPrefix(string(at.Key), nextIDPrefix) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.reserved[at]
	return known
}

// isScript reports whether an evaluation is that of the library.
func (n *nextIDs) isScript(sha string, given dropin.ScriptCall) bool {
	return sha == nextIDScript && len(given.Keys) == 1 && strings.HasPrefix(given.Keys[0], nextIDPrefix) && len(given.Args) == 1
}

// mayTake reports whether the client may take ids of the counter, and refuses if not.
func mayTake(c *commands.Call, name redlock.Key) bool {
	if !c.May(access.CategoryID) {
		c.Reply(commands.Error("NOPERM", "this user has no permissions to take ids (category "+access.CategoryID+")"))
		return false
	}
	return c.MayCount(name)
}

// current is GET.
func (n *nextIDs) current(c *commands.Call, at access.HeldKey) error {
	if !mayTake(c, at.Key) {
		return nil
	}
	n.next(c, at, "reserve", func(id int64) commands.Reply {
		n.mu.Lock()
		defer n.mu.Unlock()
		if ids := n.reserved[at]; ids != nil {
			*ids = append((*ids)[max(0, len(*ids)+1-maxReservedIDs):], id)
		}
		return commands.Bulk(strconv.FormatInt(id-1, 10))
	})
	return nil
}

// next replies to a call with what show makes of a new id.
func (n *nextIDs) next(c *commands.Call, at access.HeldKey, operation string, show func(int64) commands.Reply) {
	watch := dropin.Start()
	watch.Count(n.stats, "pottery NextID", operation)
	reply := commands.Answer(c, show)
	n.ids.NextID(c.Batch, redlock.IDRequest{DB: at.DB, Name: at.Key, Count: 1}, func(id int64, err error) {
		watch.Stop(true, err)
		reply(id, err)
	})
}

// set is the script: it replies the id, or nil if the id is no longer free.
func (n *nextIDs) set(c *commands.Call, at access.HeldKey, text string) error {
	id, ok := arg.ParseInteger(text)
	if !ok {
		return fmt.Errorf("the id %s is no integer", arg.Quoted(text))
	}
	if !mayTake(c, at.Key) {
		return nil
	}
	known, free := n.take(at, id)
	if known {
		return c.Reply(commands.Either(free, nil, commands.Int(id), commands.Nil))
	}
	// The name was not known, so GET replied nil: the id is the first one of a new counter.
	n.next(c, at, "first", func(next int64) commands.Reply {
		return commands.Either(next == id, nil, commands.Int(id), commands.Nil)
	})
	return nil
}

// take uses up a reserved id, or notes a name that was not known.
func (n *nextIDs) take(at access.HeldKey, id int64) (known, free bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids, known := n.reserved[at]
	if !known {
		if n.reserved == nil {
			n.reserved = make(map[access.HeldKey]*[]int64)
		}
		if len(n.names) == maxNextIDs {
			delete(n.reserved, n.names[0])
			n.names = n.names[1:]
		}
		at.Key = redlock.Key(strings.Clone(string(at.Key))) // the original points into the whole command
		n.names = append(n.names, at)
		n.reserved[at] = new([]int64)
		return false, false
	}
	i := slices.Index(*ids, id)
	if i < 0 {
		return true, false
	}
	*ids = slices.Delete(*ids, i, i+1)
	return true, true
}
