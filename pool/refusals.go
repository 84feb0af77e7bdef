// Why does a master that answers not do what it is asked? Error replies of locks
// and of clients' scripts are everyday answers, and belong to who asked. Those by
// which the server itself refuses concern its operator: they go to the log, too,
// because the client is told only how many masters voted.
package pool

import (
	"strings"
	"time"
)

const (
	// refusalRest is for how long a refusal is not repeated in the log.
	refusalRest = time.Minute
	// refusalTexts is how many refusals are told in that time: texts may name keys.
	refusalTexts = 16
)

// refusals is what the log has been told of one master since then. Only the
// lane's task uses it.
type refusals struct {
	since time.Duration
	told  map[string]bool
}

// news tells whether the text is to be logged now.
func (r *refusals) news(text string, now time.Duration) bool {
	if r.told == nil || now-r.since >= refusalRest {
		r.since, r.told = now, map[string]bool{}
	}
	if r.told[text] || len(r.told) >= refusalTexts {
		return false
	}
	r.told[text] = true
	return true
}

// refusedByServer tells whether an error reply is none of the caller's making.
// Before Redis 7.0 the error of a command within a script stands behind a dash.
func refusedByServer(err MasterError) bool {
	for _, code := range []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS"} {
		if err.Begins(code) || strings.Contains(string(err), ": -"+code+" ") {
			return true
		}
	}
	return denied(string(err))
}

// tellRefusals logs what the server refused in a flush. The questions about its
// settings do not count, nor does the seal: what they meet is told elsewhere.
func (l *lane) tellRefusals(f *flush, now time.Duration) {
	for i := range f.commands {
		if f.whoAt >= 0 && i >= f.whoAt || f.sealAt >= 0 && i >= f.sealAt {
			break
		}
		err, ok := f.replies[i].Err.(MasterError)
		if ok && refusedByServer(err) && l.refusals.news(string(err), now) {
			l.group.pool.options.Logger.Warn("a master refuses what it is asked", "master", l.master.Name, "db", l.group.db, "because", err.Error())
		}
	}
}
