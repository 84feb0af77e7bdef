// Operation is the interface of everything that the lanes send; its properties, answers and seals.

package pool

import (
	"errors"
	"slices"
	"strconv"
	"time"
)

// Operation is one query to the masters of a group. Every lane that it was sent
// to answers it exactly once; answers come as calls, from the lanes'
// goroutines, several at a time.
type Operation interface {
	// Props returns what the lanes must know about the operation; it is constant.
	Props() Props
	// Propose passes the fence with which the operation may be granted, higher than that of
	// every operation queued before it, or 0 if it is not Sealed; and the number of masters it
	// is sent to, a quorum of which decides. It is called once, before anything else, with the
	// queues locked: it may only store them. An operation for one lane has no such call.
	Propose(fence int64, masters int)
	// Command writes the command for one master and reports true, or reports
	// false when its time is up and nothing has to be sent.
	Command(m *SendContext, c *Command) bool
	// Answer receives one master's answer. It must not block.
	Answer(a Answer)
}

// Learner is an operation that wants the answer, too, of a master that answers after the operation
// was answered as unknown, on the same connection. Nothing has been sent to the master since then.
type Learner interface {
	Operation
	// Learn receives that answer, which counts as no vote. It may come before Answer returns, or is called.
	Learn(a Answer)
}

// Props has what the lanes must know about an operation.
type Props struct {
	// Key is what the command is about; operations on one key keep their order.
	Key string
	// Rest are further keys that the command is about; usually there are none.
	Rest []string
	// Exclusive: the command acquires Key, and nothing else on Key may follow in
	// the same flush, so that one seal never stands for two holders.
	Exclusive bool
	// StartsNew: it acquires no key and still starts something new. It is not sent to
	// a master that is being drained, as if it were Exclusive.
	StartsNew bool
	// SharesKey: what it acquires can be held together with others, or it acquires
	// nothing. After an acquire that shares its key, operations that share it too may
	// follow in the same flush.
	SharesKey bool
	// SharesFlush: what it acquires has one holder only, and it reads Answer.Taken. Then
	// other acquires that share a flush may follow on its key in the same flush.
	SharesFlush bool
	// Sealed: the answer counts only under a good seal at the end of its flush.
	Sealed bool
	// SealZero: an answer of 0 counts only under a good seal after it; an answer of 1 needs none.
	SealZero bool
	// SealOnly: there is no command; the operation needs the seal itself.
	SealOnly bool
	// Again: if a late answer shows that the master has executed nothing, the operation, answered as
	// unknown by then, is sent again, and answered again.
	Again bool
	// RaiseBy is by how much the seal raises the register above the clock, in µs: room
	// for operations whose fence must not be overtaken on its way.
	RaiseBy int64
	// RaiseTo is the register that the seal must reach; 0 = any. RaiseBy would add to a clock
	// that is ahead already, and groups that follow one another would run away from the time.
	RaiseTo int64
	// Bulk is the SHA1 of a script that does what the command does for many operations
	// at once; "" = none. An operation that has one is a BulkOperation.
	Bulk string
}

// BulkOperation may share its command with others of Props.Bulk, a script that does what their
// own commands do. It answers with an array of what they answer or, if those are digits, with
// a string of them.
type BulkOperation interface {
	Operation
	// BulkToken is the token that is acquired or released. Of an acquire that shares its key,
	// "" stands for all tokens of the key: no release of it moves.
	BulkToken() string
	// AddToBulk adds the operation's keys and arguments to a call of the script, or reports
	// false as Command does. A release always has something to send.
	AddToBulk(m *SendContext, c *BulkCall) bool
}

// startsNew reports whether the operation starts something that does not exist yet.
func (p *Props) startsNew() bool { return p.Exclusive || p.StartsNew }

// keepsPlace reports that the operation shares its bulk script only with neighbours: it neither
// acquires nor releases, and what it answers depends on the operations before it.
func (p *Props) keepsPlace() bool { return p.Bulk != "" && p.Sealed && !p.Exclusive }

// meets reports whether two operations are about one key. One that names none may be about any.
func (p *Props) meets(q *Props) bool {
	return p.Key == "" || q.Key == "" || p.Key == q.Key || slices.Contains(q.Rest, p.Key) || slices.Contains(p.Rest, q.Key) ||
		slices.ContainsFunc(p.Rest, func(key string) bool { return slices.Contains(q.Rest, key) })
}

// tokenOf is the token that is acquired or released, "" for an operation that has none of its own.
func tokenOf(op Operation) string {
	if named, ok := op.(BulkOperation); ok {
		return named.BulkToken()
	}
	return ""
}

// SendContext has what an operation may use when its command for one master is written.
type SendContext struct {
	Lane        int           // index of the master
	Now         time.Duration // on the pool's Clock
	Time        int64         // estimated clock of the master, µs since 1970
	Incarnation *Incarnation  // the memory that executes the command; otherwise the seal is bad
	ConnectedAt time.Duration // on the pool's Clock, when this connection was admitted to it

	number int64  // the last number written out, and its digits: within a
	digits string // flush most expiries are the same after rounding
}

// Decimal writes n as digits.
func (s *SendContext) Decimal(n int64) string {
	if n != s.number || s.digits == "" {
		s.number, s.digits = n, strconv.FormatInt(n, 10)
	}
	return s.digits
}

// Answer has one master's answer to one operation.
type Answer struct {
	Lane  int
	Sent  bool // false: the command was never sent, there is nothing to undo
	Reply Reply
	Seal  Seal
	Taken Taken // nil unless the flush had several acquires of one key, see Props.SharesFlush
}

// Taken holds the keys that operations of one flush have acquired so far, in the order
// of its commands.
type Taken map[string]bool

// Void reports whether an acquire of these keys that succeeded does not count,
// because an earlier one of the same flush succeeded on one of them: the key was
// released in between, and one seal cannot order the two holders. Otherwise it adds
// the keys.
func (t Taken) Void(key string, rest []string) bool {
	if t == nil {
		return false
	}
	void := t[key]
	for _, other := range rest {
		void = void || t[other]
	}
	if void {
		return true
	}
	t[key] = true
	for _, other := range rest {
		t[other] = true
	}
	return false
}

// ErrSecondTaker is the Seal.Err of an answer that Taken voids.
var ErrSecondTaker = errors.New("another acquire in the same flush succeeded before")

// Seal has what the end of a flush proved about everything before it.
type Seal struct {
	// Good: same process, same memory, sane clock, in time, from admission to
	// here. Only then does a refusal count; a consent also needs Quarantined to be false.
	Good bool
	// Quarantined: this memory is so new that it may have forgotten a lease.
	Quarantined bool
	// Age is how long this memory has been unbroken; a bootstrapped one has the
	// maximum.
	Age time.Duration
	// WorkAge is the age of what it has of work. One that was given all records when it joined has the
	// maximum.
	WorkAge time.Duration
	// Durable: what was answered is on disk.
	Durable bool
	// IncarnationID names the memory; registers of two incarnations are not comparable.
	IncarnationID string
	// Old was the master's register before this flush raised it, Top is what it is
	// at least now: the operations of the flush own the fences (Old, Top].
	Old, Top int64
	// Err is the reason why the seal is not good; nil if there was none.
	Err error
}
