// Package dropin recognises the scripts that lock libraries send to Redis, and derives a
// Class from each. With a Class, the answers of masters to a script count as votes.
//
// The package uses no sockets and no masters, and imports nothing of the daemon but how Redis
// reads a number.
//
// Reading order:
//   - class.go, reply.go: what is known of a script, and its answers;
//   - recogniser.go: pins, known scripts and evaluated scripts;
//   - known.txt, known.go, pin.go: scripts with a class of the table or of an option;
//   - parse.go, syntax.go: the closed language of the other scripts;
//   - evaluator.go, expression.go, command.go, evaluation.go, path.go, value.go, state.go: every path of a script;
//   - classify.go: from the paths to the Class;
//   - instead.go: what redlockd has instead of scripts that it refuses;
//   - set.go: SET and compare-and-delete without a script;
//   - stats.go: how often, and how long they take.
package dropin
