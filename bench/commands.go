// The lock modes as commands of the daemon. Their peer is its exclusive lock.

package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
)

// mode has the commands that acquire and release in one turn of a caller.
type mode struct {
	name   string
	lock   func(caller, turn int) []string
	unlock func(caller, turn int, token string) []string
	freed  int64 // the reply of the last command: the number of released locks
}

const modeCallers = 64

func commandName(mode string) string { return multiplexedName(modeCallers) + ", " + mode }

func commandScenarios() []scenario {
	const n = modeCallers
	shared := func(key string, more ...string) (lock func(int, int) []string, unlock func(int, int, string) []string) {
		words := append([]string{"DLOCK", key, leaseMillis}, more...)
		return func(int, int) []string { return words },
			func(_, _ int, token string) []string { return []string{"DUNLOCK", key, token} }
	}
	readers, permits := mode{name: "SHARED, one key", freed: 1}, mode{name: "LIMIT 256, one key", freed: 1}
	readers.lock, readers.unlock = shared("bench:command:readers", "SHARED")
	permits.lock, permits.unlock = shared("bench:command:permits", "LIMIT", "256")
	fair := mode{name: "FAIR", freed: 1,
		lock: func(i, turn int) []string {
			return []string{"DLOCK", turnKey("fair", i, turn, 0), leaseMillis, "FAIR"}
		},
		unlock: func(i, turn int, token string) []string {
			return []string{"DUNLOCK", turnKey("fair", i, turn, 0), token}
		},
	}
	several := mode{name: "DMLOCK of three keys", freed: 3,
		lock: func(i, turn int) []string {
			return append([]string{"DMLOCK", leaseMillis, "3"}, threeKeys(i, turn)...)
		},
		unlock: func(i, turn int, token string) []string {
			return append([]string{"DMUNLOCK", token, "3"}, threeKeys(i, turn)...)
		},
	}
	var all []scenario
	for _, m := range []mode{readers, permits, fair, several} {
		all = append(all, scenario{
			name: commandName(m.name), page: pageModes, peer: multiplexedName(n),
			run: pairs(n, m.open),
		})
	}
	return all
}

func turnKey(kind string, caller, turn, i int) string {
	return "bench:command:" + kind + ":" + strconv.Itoa(caller) + ":" + strconv.Itoa(turn%keysPerWorker) + ":" + strconv.Itoa(i)
}

func threeKeys(caller, turn int) []string {
	return []string{turnKey("several", caller, turn, 0), turnKey("several", caller, turn, 1), turnKey("several", caller, turn, 2)}
}

func (m mode) open(_ context.Context, tb *testbed, n int) (workerSet, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{tb.daemon.address}})
	if err != nil {
		return workerSet{}, err
	}
	c := workerSet{daemons: []*daemon{tb.daemon}, close: client.Close}
	for i := range n {
		c.workers = append(c.workers, &commandWorker{client: client, mode: m, number: i})
	}
	return c, nil
}

// commandWorker is one caller of the shared client.
type commandWorker struct {
	client       rueidis.Client
	mode         mode
	number, next int
}

func (w *commandWorker) turn(n *recorder) error {
	w.next++
	stage, began := n.now()
	grant, err := w.do(w.mode.lock(w.number, w.next)).ToArray()
	if rueidis.IsRedisNil(err) {
		return errRefused
	}
	if err != nil {
		return err
	}
	n.acquired(stage, began)
	if len(grant) < 3 {
		return errors.New("the grant has no token, validity and fence")
	}
	token, err := grant[0].ToString()
	if err != nil {
		return err
	}
	gone, err := w.do(w.mode.unlock(w.number, w.next, token)).AsInt64()
	if err != nil {
		return err
	}
	if gone != w.mode.freed {
		return errNotReleased
	}
	n.released()
	return nil
}

// do bounds nothing: the daemon answers in time, or the run fails.
func (w *commandWorker) do(words []string) rueidis.RedisResult {
	return w.client.Do(context.Background(), w.client.B().Arbitrary(words...).Build())
}
