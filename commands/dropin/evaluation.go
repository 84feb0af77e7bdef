// The evaluation: what is known of a script while its paths are followed, and the decisions of the
// statement that runs. Where the state of a key decides, the statement runs once for each way,
// and there is one path more.

package dropin

import "github.com/yuin/gopher-lua/ast"

// maxSteps bounds the work of one evaluation to some ms, and what it takes at once to 1 MB.
const maxSteps = 20_000

// threshold is the limit that a script compares a remaining time with: less than n ms, or less
// than argument arg times scale plus n.
type threshold struct {
	arg   int // -1: none
	scale int64
	n     int64
}

// evaluation has what the paths of a script have in common, and the statement that runs. Indexes
// of keys and arguments start at 0.
type evaluation struct {
	call  ScriptCall
	held  []*KeyView // what the keys hold, if that is known
	steps int

	// What makes the evaluator follow all paths anew once it is found.
	whole map[ast.Stmt]bool // loops that do not merge paths

	touched   map[int]bool // keys that a command used
	tokens    []int        // by key: the argument that is its token, -1 if unknown
	time      Time         // Arg from 1
	given     map[int]bool
	numbers   map[int]bool // arguments that must be whole numbers, 0 or more
	threshold *threshold
	db        int  // the argument that SELECT gets, -1 if none
	typed     bool // it reads a value

	// The statement that runs.
	path    *path
	line    int
	trail   []bool     // its decisions
	decided int        // how many it has made
	start   []keyPath  // the keys when it began
	other   *path      // the path for its other ways
	stack   []luaValue // operands of the expressions that are not complete
}

// again is a panic that makes the evaluator follow all paths anew.
type again struct{}

// eachWay runs a part of a statement once for each way that the path can go.
func (e *evaluation) eachWay(p *path, run func()) (paths []*path) {
	e.trail = e.trail[:0]
	for more := true; more; more = e.nextTrail() {
		e.path, e.decided, e.stack, e.start = p, 0, e.stack[:0], append(e.start[:0], p.keys...)
		run()
		paths = append(paths, e.path)
		p = e.other
	}
	return paths
}

// decide returns which of two ways the path goes. The other ways begin with a copy of the
// path: up to the first decision, a statement changes nothing but keys.
func (e *evaluation) decide() bool {
	if e.decided == 0 {
		e.work(e.path.size())
		e.other = e.path.clone()
		copy(e.other.keys, e.start)
	}
	if e.decided == len(e.trail) {
		e.trail = append(e.trail, true)
	}
	e.decided++
	return e.trail[e.decided-1]
}

// nextTrail changes the last decision that can be changed. It returns false if there is none.
func (e *evaluation) nextTrail() bool {
	for n := len(e.trail) - 1; n >= 0; n-- {
		if e.trail[n] {
			e.trail[n] = false
			e.trail = e.trail[:n+1]
			return true
		}
	}
	return false
}

// refusal has the line of what runs.
func (e *evaluation) refusal(format string, args ...any) refusal {
	return refuseAt(e.line, format, args...)
}

// step counts one unit of work.
func (e *evaluation) step(line int) {
	e.line = line
	e.work(1)
}

// work counts units of work: what is evaluated, and each value that is copied.
func (e *evaluation) work(units int) {
	if e.steps += units; e.steps > maxSteps {
		panic(e.refusal("it has too many ways to run, more than %d steps in all", maxSteps))
	}
}

// truth reports whether a condition holds. It refuses an unknown condition.
func (e *evaluation) truth(line int, v luaValue) bool {
	e.line = line
	if v.kind == valueUnknown {
		panic(e.refusal("a condition depends on a reply that differs between masters"))
	}
	return !v.is(valueNil, valueFalse)
}

// touch records the use of a key. If its turn is over in a loop that merges paths, the merged
// paths would differ, so the evaluator starts again without merging there.
func (e *evaluation) touch(key int) {
	e.touched[key] = true
	over := false
	for loop, turn := range e.path.passed {
		if key <= turn {
			e.whole[loop], over = true, true
		}
	}
	if over {
		panic(again{})
	}
}

// was reports whether the key was in one of these states before the script.
func (e *evaluation) was(key int, in states) bool {
	before := &e.path.keys[key].before
	switch *before & in {
	case *before:
		return true
	case 0:
		return false
	}
	if e.decide() {
		*before &= in
		return true
	}
	*before &^= in
	return false
}

func (e *evaluation) free(key int) bool {
	content := e.path.keys[key].content
	return content == contentNone || content == contentSame && e.was(key, stateFree)
}

// owned reports whether the key holds its token now.
func (e *evaluation) owned(key int) bool {
	content := e.path.keys[key].content
	return content == contentToken || content == contentSame && e.was(key, selfStates)
}

// below reports whether the remaining time of the key was below a threshold. A script has one
// threshold: of two, the lower one would have to be known.
func (e *evaluation) below(key int, than threshold) bool {
	if e.threshold == nil {
		e.threshold = &than
	}
	if *e.threshold != than {
		panic(e.refusal("it compares what is left with two different times"))
	}
	k := &e.path.keys[key]
	if e.held != nil {
		limit := than.n
		if than.arg >= 0 {
			n, _ := wholeNumber(e.call.word(than.arg))
			limit += n * than.scale
		}
		return e.held[key].Left < limit
	}
	if k.remainder == remainderAny {
		k.remainder = remainderEnough
		if e.decide() {
			k.remainder = remainderBelow
		}
	}
	return k.remainder == remainderBelow
}

// isToken records that an argument is the token of a key.
func (e *evaluation) isToken(key, arg int) {
	if e.tokens[key] < 0 {
		e.tokens[key] = arg
	}
	if e.tokens[key] != arg {
		panic(e.refusal("it takes arguments %d and %d for the token", e.tokens[key]+1, arg+1))
	}
}

// givenArgs are the arguments that decided something, in their order.
func (e *evaluation) givenArgs() (given []Given) {
	for arg := range len(e.call.Args) + len(e.call.Keys) {
		if e.given[arg] {
			given = append(given, Given{Arg: arg + 1, Value: e.call.word(arg)})
		}
	}
	return given
}

// look is the value of an argument as it is in this call. What follows from it is known for calls
// with the same value alone.
func (e *evaluation) look(arg int) string {
	e.given[arg] = true
	return e.call.word(arg)
}
