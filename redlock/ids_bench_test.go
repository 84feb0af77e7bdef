package redlock

// ids_bench_test.go: the price of an id, compared with the obvious algorithm.
// Run: go test ./redlock -run '^$' -bench IDs -benchtime 1s

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"redlockd/pool"
	"redlockd/pool/faulty"
	"redlockd/pool/setup"
)

// BenchmarkIDs gives ids/s of this engine and, in the same run on the same
// masters, of the two-phase algorithm: read the largest value of all masters,
// then write that plus one on all, until a majority took it.
func BenchmarkIDs(b *testing.B) {
	for _, kind := range []struct {
		name string
		args []string
	}{{"memory", nil}, {"fsync-always", durable}} {
		servers := faulty.StartGroup(b, 5, kind.args...)
		engine := benchLocker(b, servers)
		naive := newNaive(b, servers)
		for _, callers := range []int{1, 8, 64, 256} {
			b.Run(fmt.Sprintf("%s/callers=%d", kind.name, callers), func(b *testing.B) {
				for range b.N {
					ours := idsPerSecond(b, callers, engine.next)
					theirs := idsPerSecond(b, callers, naive.next)
					b.ReportMetric(ours, "ids/s")
					b.ReportMetric(theirs, "naive-ids/s")
					b.ReportMetric(ours/theirs, "times-naive")
				}
			})
		}
	}
}

// idsPerSecond has callers draw ids for a moment.
func idsPerSecond(b *testing.B, callers int, next func() error) float64 {
	b.Helper()
	const span = 700 * time.Millisecond
	var given atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for range callers {
		group.Go(func() {
			for time.Since(begin) < span {
				if err := next(); err != nil {
					b.Error(err)
					return
				}
				given.Add(1)
			}
		})
	}
	group.Wait()
	return float64(given.Load()) / time.Since(begin).Seconds()
}

type benchEngine struct{ *Locker }

func benchLocker(b *testing.B, servers []*faulty.Server) *benchEngine {
	b.Helper()
	o := pool.Options{MasterTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
	for i, s := range servers {
		o.Masters = append(o.Masters, pool.Master{Name: name(i), Network: "tcp", Address: s.Addr()})
	}
	if err := setup.BootstrapIfBlank(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	p, err := pool.New(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	l, err := New(p, Options{Logger: o.Logger, VolatileIDs: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close(time.Second) })
	return &benchEngine{l}
}

func (e *benchEngine) next() error {
	answer := make(chan error, 1)
	e.NextID(nil, IDRequest{Name: "bench", Count: 1}, func(_ int64, err error) { answer <- err })
	return <-answer
}

// naive is the two-phase algorithm, pipelined by its client over all callers.
type naive struct {
	masters []rueidis.Client
}

// naiveWrite sets the counter if the value is larger: the seed's second phase.
var naiveWrite = rueidis.NewLuaScript(`local now = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) <= now then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`)

func newNaive(b *testing.B, servers []*faulty.Server) *naive {
	b.Helper()
	n := &naive{}
	for _, s := range servers {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, DisableCache: true, ForceSingleClient: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(c.Close)
		n.masters = append(n.masters, c)
	}
	return n
}

// all asks every master at once and hands over their numbers, 0 for an error.
func (n *naive) all(ask func(rueidis.Client) (int64, error)) []int64 {
	answers := make(chan int64, len(n.masters)) // one answer each
	for _, m := range n.masters {
		go func() {
			v, err := ask(m)
			if err != nil {
				v = 0
			}
			answers <- v
		}()
	}
	var got []int64
	for range n.masters {
		got = append(got, <-answers)
	}
	return got
}

func (n *naive) next() error {
	ctx := context.Background()
	for {
		largest := int64(0)
		for _, v := range n.all(func(c rueidis.Client) (int64, error) {
			return c.Do(ctx, c.B().Get().Key("naive").Build()).AsInt64()
		}) {
			largest = max(largest, v)
		}
		took := int64(0)
		for _, v := range n.all(func(c rueidis.Client) (int64, error) {
			return naiveWrite.Exec(ctx, c, []string{"naive"}, []string{strconv.FormatInt(largest+1, 10)}).AsInt64()
		}) {
			took += v
		}
		if took > int64(len(n.masters)/2) {
			return nil
		}
	}
}
