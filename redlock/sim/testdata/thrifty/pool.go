// The lanes of a study, see redlock/THRIFTY.md: an operation that some masters receive later or never.

package pool

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Thrift is how a daemon of the study saves commands.
type Thrift struct {
	Choice     string        // how it chooses the first masters: fixed, key or time; "" = it is ordinary
	Hedge      time.Duration // the others receive the request after it; 0 = only after an answer that is no yes
	Complete   time.Duration // a lock this old gets its other copies; 0 = never
	Wait       bool          // a refusal sends it to the others only when all first masters have answered
	All        bool          // modes, not only plain exclusive locks
	ReleaseAll bool          // a release goes to all masters at once
	Mixed      bool          // every second daemon is ordinary
	Epochless  bool          // a control: the others may be of another list of masters
	Uncalled   bool          // a control: a copy may be completed after the release
}

// Thrifty is parsed from the environment, as in "choice=key hedge=2ms complete=20ms wait".
var Thrifty = func() (t Thrift) {
	for _, word := range strings.Fields(os.Getenv("THRIFTY")) {
		name, value, _ := strings.Cut(word, "=")
		span, _ := time.ParseDuration(value)
		switch name {
		case "choice":
			t.Choice = value
		case "hedge":
			t.Hedge = span
		case "complete":
			t.Complete = span
		case "wait":
			t.Wait = true
		case "all":
			t.All = true
		case "release-all":
			t.ReleaseAll = true
		case "mixed":
			t.Mixed = true
		case "epochless":
			t.Epochless = true
		case "uncalled":
			t.Uncalled = true
		default:
			panic("THRIFTY: unknown word " + word)
		}
	}
	return t
}()

// Counts and Spans are what a study counts, in one thread.
var (
	Counts = map[string]int64{}
	Spans  = map[string][]time.Duration{}
)

// CountCommand counts what masters execute.
func CountCommand(words []string) {
	switch words[0] {
	case "SET":
		Counts["keys"]++
		Counts["sets"]++
	case "EVALSHA":
		n := int64(0)
		fmt.Sscan(words[2], &n)
		Counts["keys"] += n
	case "ZADD":
		Counts["seals"]++
	}
}

// Partial is an operation that begins with some masters. The lock of the group is held.
type Partial interface {
	FirstLanes(lanes int, list any, choose func(key string) uint16) uint16
}

func (g *Group) firstLanesLocked(op Operation) uint16 {
	all := uint16(1)<<len(g.lanes) - 1
	if p, ok := op.(Partial); ok && Thrifty.Choice != "" && !g.pool.options.Ordinary {
		return p.FirstLanes(len(g.lanes), &g.lanes[0], g.chooseLocked)
	}
	return all
}

// chooseLocked is a quorum of masters that vote now, or all masters.
func (g *Group) chooseLocked(key string) (some uint16) {
	n := len(g.lanes)
	first := 0
	switch Thrifty.Choice {
	case "key":
		h := uint32(2166136261)
		for i := range len(key) {
			h = (h ^ uint32(key[i])) * 16777619
		}
		first = int(h>>8) % n
	case "time":
		first = int(g.medianLocked(g.now()) / 20_000 % int64(n))
	}
	for i, taken := 0, 0; i < n && taken < Quorum(n); i++ {
		l := g.lanes[(first+i)%n]
		if state, _ := l.stateLocked(); state != votingState || l.conn == nil || l.conn.stalled || l.drained() != 0 {
			continue
		}
		some |= 1 << l.index
		taken++
		if taken == Quorum(n) {
			return some
		}
	}
	return 1<<n - 1
}

// SendTo queues an operation on some more masters, unless the list has changed.
func (g *Group) SendTo(lanes uint16, list any, op Operation) {
	var left []Answer
	g.mu.Lock()
	e := queueEntry{op: op, props: op.Props()}
	if e.props.Sealed {
		e.fence = g.tickLocked(g.now())
	}
	same := list == any(&g.lanes[0]) || Thrifty.Epochless
	for i := range maxMasters {
		if lanes&(1<<i) == 0 {
			continue
		}
		err := errLeft
		if same && i < len(g.lanes) {
			err = g.lanes[i].queueLocked(e)
			g.lanes[i].wakeLocked()
		}
		if err != nil {
			left = append(left, Answer{Lane: i, Reply: Reply{Kind: ReplyError, Err: err}, Seal: Seal{Err: err}})
		}
	}
	g.mu.Unlock()
	for _, a := range left {
		g.answer(op, a)
	}
}
