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

// dnextid answers the first of n consecutive ids, each above every id that was
// answered before this request arrived.
func (h *handlers) dnextid(c *commands.Call) error {
	request, err := nextIDRequest(c)
	if err != nil {
		return err
	}
	if err := h.deps.Users.MayCount(c.Rights(), request.DB, request.Name); err != nil {
		c.Reply(commands.Error("NOPERM", err.Error()))
		return nil
	}
	h.deps.IDs.NextID(c.Batch, request, func(first int64, err error) {
		if err != nil {
			c.Reply(commands.Failure(err))
			return
		}
		c.Reply(commands.Int(first))
	})
	return nil
}

func nextIDRequest(c *commands.Call) (redlock.IDRequest, error) {
	request := redlock.IDRequest{DB: c.Client.DB, Count: 1}
	words := c.Words()
	var err error
	if request.Name, err = arg.ParseCounter(words.Next()); err != nil {
		return request, err
	}
	for words.More() {
		name, value, err := words.Option()
		if err != nil {
			return request, err
		}
		if request.Count, err = (arg.Bounds{Min: 1, Max: maxIDs}).Parse(name, value); err != nil {
			return request, err
		}
	}
	return request, nil
}
