// The answers of the masters' scripts.

package engine

import "redlockd/pool"

// IsYes reads the answers of commands and scripts that take, prolong or release: a string
// or a positive number, alone or as the first of several.
func IsYes(r pool.Reply) bool {
	if r.Kind == pool.ReplyArray {
		if len(r.Items) == 0 {
			return false
		}
		n, _ := r.Items[0].Number()
		return n == 1
	}
	return r.Kind == pool.ReplyString || r.Kind == pool.ReplyInt && r.Int > 0
}

// IsOne reads the answers of which 1 alone is yes.
func IsOne(r pool.Reply) bool { return r.Kind == pool.ReplyInt && r.Int == 1 }

// Numbers are the integers of an array.
func Numbers(r pool.Reply) (n []int64) {
	for _, item := range r.Items {
		n = append(n, item.Int)
	}
	return n
}

// FromMaster reports whether a master has answered, possibly with an error.
func FromMaster(r pool.Reply) bool {
	if r.Err == nil {
		return true
	}
	_, answered := r.Err.(pool.MasterError)
	return answered
}

// CountsAsVote reports whether an answer counts as a vote. A quarantined master cannot have
// forgotten what it holds, but it may have forgotten what it lacks.
func CountsAsVote(a pool.Answer) bool { return a.Seal.Good && !a.Seal.Quarantined }

// Flag is a truth value as an argument of a script.
func Flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
