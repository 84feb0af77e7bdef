// Package engine puts one question to all masters of a group and counts the answers once.
// Operations are questions; the engine queues them, counts, traces and names what is missing.
//
// Files in reading order:
//   - engine.go, names.go, term.go, errors.go, counters.go: what every operation needs;
//   - ballot.go, missing.go, ownership.go: one question to all masters, counted, while the group has its keys;
//     repeat.go: once more, if masters were too slow;
//   - message.go, answers.go: commands whose answers are not counted as votes;
//   - reply.go: what the answers of the masters' scripts mean;
//   - trace.go: reports of each master's vote.
package engine
