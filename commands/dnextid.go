// DNEXTID name [COUNT n]: the next ids of a counter.

package commands

import "redlockd/redlock"

// maxIDs bounds one request. All requests of a round share its range, so this
// also bounds what a round that fails leaves unused.
const maxIDs = 1_000_000

// dnextid answers the first of n consecutive ids, each above every id that was
// answered before this request arrived.
func (t *Table) dnextid(c *Call) error {
	request, err := nextIDRequest(c)
	if err != nil {
		return err
	}
	if err := t.deps.Users.MayCount(c.Rights(), request.DB, request.Name); err != nil {
		c.Reply(Error("NOPERM", err.Error()))
		return nil
	}
	t.deps.IDs.NextID(c.Batch, request, func(first int64, err error) {
		if err != nil {
			c.Reply(failure(err))
			return
		}
		c.Reply(Int(first))
	})
	return nil
}

func nextIDRequest(c *Call) (redlock.IDRequest, error) {
	request := redlock.IDRequest{DB: c.Client.DB, Count: 1}
	words := c.Words()
	var err error
	if request.Name, err = parseCounter(words.next()); err != nil {
		return request, err
	}
	for words.more() {
		name, value, err := words.option()
		if err != nil {
			return request, err
		}
		if request.Count, err = (bounds{min: 1, max: maxIDs}).parse(name, value); err != nil {
			return request, err
		}
	}
	return request, nil
}
