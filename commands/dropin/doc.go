// Package dropin recognises the scripts that lock libraries send to Redis, and derives a
// Class from each. With a Class, the answers of masters to a script count as votes.
//
// The package uses no sockets and no masters, and imports nothing of the daemon.
//
// Reading order:
//   - class.go, reply.go: what is known of a script, and its answers;
//   - recogniser.go: pins, known scripts and evaluated scripts;
//   - known.go, known_table.go, pin.go: scripts with a class of the table or of an option;
//   - parse.go, syntax.go: the closed language of the other scripts;
//   - evaluator.go, path.go, value.go, expression.go, comparison.go: every path of a script;
//   - command.go, commandread.go, commandstore.go, commanddelete.go, commandexpiry.go,
//     commandsignal.go: the commands that a script may call;
//   - classify.go, lockeffect.go, operation.go, argroles.go, outcomes.go, readoutcomes.go,
//     answershape.go: from the paths to the Class;
//   - set.go: SET and compare-and-delete without a script;
//   - stats.go: how often, and how long they take.
package dropin
