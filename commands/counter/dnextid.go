// DNEXTID name [COUNT n]: the next ids of a counter.

package counter

import (
	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// maxIDs bounds one request. All requests of a round share its range, so this
// also bounds what a round that fails leaves unused.
const maxIDs = 1_000_000

type handlers struct{ deps commands.Deps }

// dnextid answers the first of n consecutive ids, each above every id that was
// answered before this request arrived.
func (h *handlers) dnextid(c *commands.Call) error {
	words := c.Words()
	request := redlock.IDRequest{DB: c.Client.DB, Name: words.Counter(), Count: 1}
	for words.More() {
		request.Count = words.Int(words.Option(), arg.Bounds{Min: 1, Max: maxIDs})
	}
	if err := words.Err(); err != nil || !c.MayCount(request.Name) {
		return err
	}
	h.deps.IDs.NextID(c.Batch, request, commands.Answer(c, commands.Int))
	return nil
}
