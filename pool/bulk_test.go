package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	bulkScript    = "0123456789012345678901234567890123456789"
	acquireScript = "abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd"
	extendScript  = "ababababababababababababababababababababab"
)

// sharer is an operation that may share its command.
type sharer struct {
	*asker
	word string
}

func (s *sharer) BulkToken() string { return s.word }

func (s *sharer) AddToBulk(_ *SendContext, c *BulkCall) bool {
	if s.skip {
		return false
	}
	if !s.plan.Exclusive {
		c.Keys, c.Args = append(c.Keys, s.plan.Key), append(c.Args, s.word)
		return true
	}
	c.Group(s.plan.Key, []string{"q" + s.plan.Key})
	c.Args = append(c.Args, s.words[len(s.words)-1])
	return true
}

func sharing(key, word string) queueEntry {
	one := &asker{plan: Props{Key: key, SealZero: true, Bulk: bulkScript}, words: []string{"EVALSHA", "alone", "1", key, word}}
	return queueEntry{op: &sharer{asker: one, word: word}, props: one.plan}
}

// prolonging is an extension, which may share its command.
func prolonging(key, name string) queueEntry {
	one := &asker{plan: Props{Key: key, SharesKey: true, Sealed: true, Bulk: extendScript}, words: []string{"EVALSHA", "alone", "1", key, name}}
	return queueEntry{op: &sharer{asker: one, word: name}, props: one.plan}
}

func entryOf(op *asker) queueEntry { return queueEntry{op: op, props: op.plan} }

// takingTogether is an acquire that may share its command.
func takingTogether(key, name, word string, sharesKey bool) queueEntry {
	one := &asker{
		plan:  Props{Key: key, Exclusive: true, SharesKey: sharesKey, SharesFlush: !sharesKey, Sealed: true, Bulk: acquireScript},
		words: []string{"EVALSHA", "alone", "2", key, "q" + key, name},
	}
	return queueEntry{op: &sharer{asker: one, word: word}, props: one.plan}
}

// executed are the keys of the flush's commands in the order in which the master
// meets them, each with what tells its entry.
func executed(f *flush) (out []string) {
	for _, c := range f.commands {
		switch {
		case c.Args[0] != "EVALSHA":
			out = append(out, strings.Join(c.Args[1:], " "))
		case c.Args[1] == "alone":
			out = append(out, c.Args[3]+" "+c.Args[len(c.Args)-1])
		case c.Args[1] == acquireScript:
			n, _ := strconv.Atoi(c.Args[2])
			args := c.Args[3+n:]
			for k := 0; k < n; k += 2 {
				size, _ := strconv.Atoi(args[0])
				for _, name := range args[1 : 1+size] {
					out = append(out, c.Args[3+k]+" "+name)
				}
				args = args[1+size:]
			}
		default:
			n := (len(c.Args) - 3) / 2
			for i := range n {
				out = append(out, c.Args[3+i]+" "+c.Args[3+n+i])
			}
		}
	}
	return out
}

// takingJointly is an acquire that shares its key, for the token of the operation word.
func takingJointly(key, name, word string) queueEntry {
	one := &asker{plan: Props{Key: key, Exclusive: true, SharesKey: true, Sealed: true}, words: []string{"SET", key, name}}
	return queueEntry{op: &sharer{asker: one, word: word}, props: one.plan}
}

// nameOf is what executed shows of an entry behind its key.
func nameOf(e queueEntry) string {
	switch op := e.op.(type) {
	case *sharer:
		if !e.props.Exclusive {
			return op.word
		}
		return op.words[len(op.words)-1]
	case *asker:
		return op.words[len(op.words)-1]
	}
	return ""
}

// mayOvertake reports whether an entry may be executed before an earlier one on its key: if
// the earlier one is an acquire of another token. An acquire with a command of its own
// overtakes one that waits for others; of several that exclude one another one counts.
func mayOvertake(e, earlier queueEntry) bool {
	by, named := earlier.op.(*sharer)
	switch {
	case !named || !earlier.props.Exclusive:
		return false
	case e.props.Exclusive:
		return earlier.props.Bulk != "" && e.props.Bulk == ""
	}
	return e.props.Bulk == bulkScript && by.word != "" && by.word != nameOf(e)
}

// mixedQueue has operations of every kind on few keys, each with a name of its own.
func mixedQueue(r *rand.Rand) (queue []queueEntry) {
	for i := range r.IntN(30) {
		key, name := string(rune('a'+r.IntN(8))), fmt.Sprint(i)
		var e queueEntry
		switch r.IntN(16) {
		case 13, 14, 15:
			e = prolonging(key, name)
		case 9, 10:
			e = takingTogether(key, name, fmt.Sprint(i+1+r.IntN(6)), true)
		case 11, 12:
			e = takingTogether(key, name, fmt.Sprint(i+1+r.IntN(6)), false)
		case 0, 1:
			e = entryOf(&asker{plan: Props{Key: key, Exclusive: true, SharesKey: r.IntN(40) == 0}, words: []string{"SET", key, name}})
		case 2, 3: // perhaps with the token of an operation that follows
			e = takingJointly(key, name, fmt.Sprint(i+1+r.IntN(6)))
		case 4:
			e = entryOf(&asker{plan: Props{Key: key, SharesKey: r.IntN(2) == 0}, words: []string{"PEXPIREAT", key, name}})
		default:
			e = sharing(key, name)
			e.props.SharesKey = r.IntN(4) > 0
		}
		queue = append(queue, e)
	}
	return queue
}

func TestBulk_KeepsTheOrderOfEveryKey(t *testing.T) {
	shared, overtaken, kept := 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := newFlushStage()
		f := s.flush
		queue := mixedQueue(r)
		n := f.fill(queue, 100)
		f.write()
		at := map[string]int{}
		for i, one := range executed(f) {
			at[one] = i
		}
		for j, e := range queue[:n] {
			if _, ok := at[e.props.Key+" "+nameOf(e)]; !ok {
				t.Fatalf("seed %d: %s of key %s is not executed: %q", seed, nameOf(e), e.props.Key, executed(f))
			}
			for _, earlier := range queue[:j] {
				if earlier.props.Key != e.props.Key {
					continue
				}
				allowed := mayOvertake(e, earlier)
				switch overtakes := at[e.props.Key+" "+nameOf(e)] < at[e.props.Key+" "+nameOf(earlier)]; {
				case overtakes && allowed:
					overtaken++
				case overtakes:
					t.Fatalf("seed %d: on key %s, %s is executed before %s: %q", seed, e.props.Key, nameOf(e), nameOf(earlier), executed(f))
				case e.props.Bulk != "" && !allowed:
					kept++
				}
			}
		}
		var answered []string
		f.inOrder(func(i int) { answered = append(answered, f.entries[i].props.Key+" "+nameOf(f.entries[i])) })
		if len(answered) != n || !slices.Equal(answered, executed(f)[:n]) {
			t.Fatalf("seed %d: answered in the order %q, executed in the order %q", seed, answered, executed(f))
		}
		for _, b := range f.bulks {
			shared += len(b.entries) - 1
		}
	}
	if shared < 1000 || overtaken < 50 || kept < 300 {
		t.Errorf("only %d operations shared a command, %d overtook an acquire, %d must not", shared, overtaken, kept)
	}
}

func TestBulk_ReleasesBetweenAcquiresOfOtherKeysAreOneCommand(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	f.fill([]queueEntry{
		entryOf(acquiring("a")), sharing("b", "1"), entryOf(acquiring("c")), sharing("d", "2"),
		sharing("e", "3"), entryOf(acquiring("e")), entryOf(&asker{plan: Props{Key: "x"}, words: []string{"GET", "x"}}), sharing("f", "4"),
	}, 10)
	f.write()
	var got []string
	for _, c := range f.commands {
		got = append(got, strings.Join(c.Args, " "))
	}
	want := []string{
		"SET a", "EVALSHA " + bulkScript + " 3 b d e 1 2 3", "SET c", // d and e moved to the place of b
		"SET e", "GET x", "EVALSHA alone 1 f 4", // f did not pass x, and shares with no other
	}
	if !slices.Equal(got[:len(want)], want) {
		t.Errorf("written\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBulk_ExtensionsShareACommandOnlyWithNeighbours(t *testing.T) {
	f := newFlushStage().flush
	over := prolonging("d", "0")
	over.op.(*sharer).skip = true
	f.fill([]queueEntry{
		over, sharing("a", "1"), prolonging("a", "1"), prolonging("b", "2"), over, prolonging("c", "3"), sharing("b", "2"),
		prolonging("c", "4"), entryOf(acquiring("e")), prolonging("b", "5"), over,
	}, 20)
	f.write()
	want := []string{
		"EVALSHA alone 1 a 1", "EVALSHA " + extendScript + " 3 a b c 1 2 3", "EVALSHA alone 1 b 2",
		"EVALSHA alone 1 c 4", "SET e", "EVALSHA " + extendScript + " 1 b 5",
	}
	if got := commandLines(f); !slices.Equal(got[:len(got)-3], want) { // the seal is three
		t.Errorf("written\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// answersTo fills the flush's replies: one for each command, of a bulk this one.
func answersTo(f *flush, bulk Reply) {
	f.replies = f.replies[:0]
	for _, c := range f.commands {
		if c.Args[0] == "EVALSHA" && c.Args[1] == bulkScript {
			f.replies = append(f.replies, bulk)
			continue
		}
		f.replies = append(f.replies, Reply{Kind: ReplyInt, Int: 7})
	}
}

func TestBulk_EachOperationHearsItsOwnDigit(t *testing.T) {
	s := newFlushStage()
	f := s.flush
	f.fill([]queueEntry{sharing("a", "1"), entryOf(acquiring("b")), sharing("c", "2"), sharing("d", "3")}, 10)
	f.write()
	answersTo(f, Reply{Kind: ReplyString, Str: "101"})
	if err := f.brokenLink(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1, 7, 0, 1} {
		if got := f.reply(i); got.Kind != ReplyInt || got.Int != want {
			t.Errorf("entry %d hears %+v, want %d", i, got, want)
		}
	}
	refused := Reply{Kind: ReplyError, Err: MasterError("LOADING")}
	answersTo(f, refused)
	if err := f.brokenLink(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 2, 3} {
		if got := f.reply(i); got.Err != refused.Err {
			t.Errorf("entry %d hears %+v of an error for all", i, got)
		}
	}
}

func TestBulk_AnOddReplyEndsTheConnection(t *testing.T) {
	for name, odd := range map[string]Reply{
		"nil": {}, "an integer": {Kind: ReplyInt, Int: 1}, "too short": {Kind: ReplyString, Str: "1"},
		"too long": {Kind: ReplyString, Str: "111"}, "no digit": {Kind: ReplyString, Str: "1-"},
		"a longer array": {Kind: ReplyArray, Items: make([]Reply, 3)},
	} {
		s := newFlushStage()
		f := s.flush
		f.fill([]queueEntry{sharing("a", "1"), sharing("b", "2")}, 10)
		f.write()
		answersTo(f, odd)
		if err := f.brokenLink(); !errors.Is(err, errUnexpectedBulk) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// commandLines are the flush's commands, each in one line.
func commandLines(f *flush) (out []string) {
	for _, c := range f.commands {
		out = append(out, strings.Join(c.Args, " "))
	}
	return out
}

func TestBulk_AcquiresWaitForTheReleasesOfTheirSegment(t *testing.T) {
	f := newFlushStage().flush
	over := takingTogether("a", "late", "9", true)
	over.op.(*sharer).skip = true
	queue := []queueEntry{
		takingTogether("b", "r1", "1", true), takingTogether("a", "r2", "2", true), over, sharing("b", "7"),
		entryOf(&asker{plan: Props{Sealed: true, SealOnly: true}}), entryOf(acquiring("e")), takingTogether("b", "r3", "3", true), sharing("x", "8"),
		sharing("b", "1"), // of the first one's token: the segment ends
		takingTogether("b", "r4", "4", true), takingTogether("b", "r5", "5", true), entryOf(&asker{plan: Props{Key: "x"}, words: []string{"GET", "x"}}),
		over, over, takingTogether("c", "r6", "6", true),
	}
	for i := range queue {
		queue[i].props.SharesKey = queue[i].props.Bulk != ""
	}
	f.fill(queue, 100)
	f.write()
	want := []string{
		"EVALSHA " + bulkScript + " 2 b x 7 8", "SET e",
		"EVALSHA " + acquireScript + " 4 a qa b qb 1 r2 2 r1 r3",
		"EVALSHA alone 1 b 1",
		"EVALSHA " + acquireScript + " 2 b qb 2 r4 r5",
		"GET x",
		"EVALSHA " + acquireScript + " 2 c qc 1 r6",
	}
	if got := commandLines(f); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Fatalf("written\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	list := Reply{Kind: ReplyArray, Items: []Reply{{Kind: ReplyArray}, {Kind: ReplyInt, Int: -1}}}
	f.replies = append(f.replies[:0], Reply{Kind: ReplyString, Str: "10"}, Reply{}, Reply{Kind: ReplyString, Str: "201"}, Reply{}, list, Reply{}, Reply{Kind: ReplyString, Str: "1"})
	f.replies = append(f.replies, make([]Reply, len(f.commands)-len(f.replies))...)
	if err := f.unexpectedBulk(); err != nil {
		t.Fatal(err)
	}
	var got []string
	f.inOrder(func(i int) {
		if f.index[i] < 0 {
			return
		}
		got = append(got, fmt.Sprintf("%s:%d", nameOf(f.entries[i]), f.reply(i).Int))
	})
	if want := "7:1 8:0 e:0 r2:2 r1:0 r3:1 1:0 r4:0 r5:-1 x:0 r6:1"; strings.Join(got, " ") != want {
		t.Errorf("answered %q, want %q", got, want)
	}
}

// What the master has not executed is sent again behind what it has; see takeUnexecuted.
func TestBulk_WhatIsDeniedTogetherIsExecutedOnceAndPassesNothingOfItsToken(t *testing.T) {
	isExecutedOnce(t, "NOPERM No permissions to access a key", func(c Command) bool { return c.Args[1] != "alone" })
}

func TestBulk_WhatHasLostItsScriptIsExecutedOnceAndPassesNothingOfItsToken(t *testing.T) {
	isExecutedOnce(t, "NOSCRIPT No matching script. Please use EVAL.", func(Command) bool { return true })
}

// isExecutedOnce plays flushes of which the master refuses half of the scripts' calls, of those that
// are eligible.
func isExecutedOnce(t *testing.T, with string, eligible func(Command) bool) {
	again, passed, refused := 0, 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 13))
		s := newFlushStage()
		f := s.flush
		queue := mixedQueue(r)
		n := f.fill(queue, 100)
		f.write()
		var kept []Command
		for i := range f.commands {
			f.replies = append(f.replies, Reply{Kind: ReplyInt, Int: 7})
			if c := f.commands[i]; c.Args[0] == "EVALSHA" && eligible(c) && r.IntN(2) == 0 {
				f.replies[i] = refusal(with)
			} else {
				kept = append(kept, c)
			}
		}
		f.lost = strings.HasPrefix(with, "NOSCRIPT")
		denied, alone := f.takeUnexecuted(0, nil), f.aloneUntil
		f.commands = kept
		done := executed(f)
		for len(denied) > 0 {
			f := newFlushStage().flush
			f.context.Now, f.aloneUntil = 0, alone
			m := f.fill(denied, 100)
			f.write()
			if alone > 0 && len(f.bulks) > 0 {
				t.Fatalf("seed %d: operations share commands again", seed)
			}
			done, denied, again = append(done, executed(f)[:m]...), denied[m:], again+m
		}
		at := map[string]int{}
		for i, one := range done {
			if _, twice := at[one]; twice {
				t.Fatalf("seed %d: %s is executed twice: %q", seed, one, done)
			}
			at[one] = i
		}
		for j, e := range queue[:n] {
			place, executed := at[e.props.Key+" "+nameOf(e)]
			if !executed {
				refused++
				if f.entries[j].op == nil {
					t.Fatalf("seed %d: %s of key %s is neither executed nor answered", seed, nameOf(e), e.props.Key)
				}
				continue
			}
			for _, earlier := range queue[:j] {
				before, executed := at[earlier.props.Key+" "+nameOf(earlier)]
				if !executed || earlier.props.Key != e.props.Key || before < place || mayOvertake(e, earlier) {
					continue
				}
				if passed++; tokenOf(e.op) == "" || tokenOf(earlier.op) == "" || tokenOf(e.op) == tokenOf(earlier.op) {
					t.Fatalf("seed %d: on key %s, %s is executed before %s: %q", seed, e.props.Key, nameOf(e), nameOf(earlier), done)
				}
			}
		}
	}
	if again < 1000 || passed < 50 || refused < 50 {
		t.Errorf("only %d operations were sent again, %d passed another token's, %d were refused", again, passed, refused)
	}
}
