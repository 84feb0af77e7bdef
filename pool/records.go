// Records are the copies of other masters' registers that each master of a group stores.
//
// A register never falls, in whatever incarnation: a new incarnation begins above the old
// register. So a master that returns with a lower one has lost what it
// acknowledged, although its file calls itself durable. A daemon that has run all
// the time detects that by itself (lane.acked). For daemons that have not, every daemon
// writes what it has seen acknowledged by each master to the other masters: at most
// once a second, and only what has risen. A record is true for ever, whichever
// memory holds it, so ZADD GT is enough, and damaged or missing records only remove
// the protection.
//
// A new daemon reads the records of a quorum of masters before it admits any
// master, and of every master that its first dial reaches. A grant needs a quorum
// of connected masters anyway, so this costs no availability. Later the daemon reads the
// records again only while a master is away, for another daemon may still reach it.
//
// This covers no register that was raised in the last second or so before the last
// daemon ended, and no record whose holders are all away, blank or rolled back, too.

package pool

// maxAdmissions of one connection are tried: each after the first begins a new incarnation.
const maxAdmissions = 10

// appendRecordQueries is AppendRecordQueries for the masters of these lanes.
func appendRecordQueries(lanes []*lane, commands []Command) []Command {
	for _, l := range lanes {
		commands = append(commands, recordQuery(&l.group.pool.options, l.group.db, l.master.Name))
	}
	return commands
}

// minRegisterLocked is what the master's register cannot be below.
func (l *lane) minRegisterLocked() int64 { return max(l.acked, l.recordedRegister) }

// mergeRecordsLocked applies the records of one master about these lanes.
func (l *lane) mergeRecordsLocked(lanes []*lane, replies []Reply) {
	g := l.group
	for i, other := range lanes {
		score, err := ReadRecord(replies[i])
		switch {
		case err == nil:
		case lasts(err):
			l.logUnreadableLocked(err)
		default:
			return // nothing is read
		}
		if other != l {
			other.recordedRegister = max(other.recordedRegister, score)
		}
	}
	l.recordsReadAt = max(g.now(), 1)
	g.checkRecordsReadLocked()
}

// checkRecordsReadLocked lets masters be admitted once the records of a quorum have been
// read and the first dial of every other master is over. A first dial takes a
// master timeout or two at most, and Start waits for it anyway.
func (g *Group) checkRecordsReadLocked() {
	read := 0
	for _, l := range g.lanes {
		switch {
		case l.recordsReadAt > 0:
			read++
		case l.state == stateDialing:
			return
		}
	}
	if read >= Quorum(len(g.lanes)) && !g.recordsKnown {
		g.recordsKnown = true
		close(g.recordsRead)
	}
}

// logUnreadableLocked logs once that the master's records cannot be used.
func (l *lane) logUnreadableLocked(err error) {
	if l.recordsUnreadable {
		return
	}
	l.recordsUnreadable = true
	l.group.pool.options.Logger.Warn("records of acknowledged registers are unreadable and count as absent",
		"master", l.master.Name, "db", l.group.db, "key", RecordsKey(&l.group.pool.options),
		"err", err.Error(), "hint", "WRONGTYPE: other data has the key, set --key-prefix or delete it; NOPERM: the user lacks zscore or zadd")
}

// planRecordsLocked decides what a flush writes and whether it reads. Masters are
// connected as a rule, and then their own registers tell more than records do.
func (l *lane) planRecordsLocked(f *flush) {
	if l.recordsWritten == nil {
		return // embedded masters end with this process
	}
	g, away := l.group, false
	f.recordsKey, l.recordLanes = RecordsKey(&g.pool.options), g.lanes
	for _, other := range g.lanes {
		if other == l {
			continue
		}
		if other.acked > l.recordsWritten[other.index] {
			f.newRecords = append(f.newRecords, record{other.index, recordOf(&g.pool.options, g.db, other.master.Name), other.acked})
		}
		away = away || other.conn == nil || other.conn.connectedAt >= l.recordsReadAt
	}
	if away {
		f.records = appendRecordQueries(g.lanes, nil)
	}
}

// noteRecordsLocked stores what the flush has written and read. What a master refuses for
// a while, as without memory, is written again a second later.
func (l *lane) noteRecordsLocked(f *flush) {
	if f.recordsWrittenAt >= 0 {
		if err := f.replies[f.recordsWrittenAt].Err; err == nil {
			for _, r := range f.newRecords {
				l.recordsWritten[r.lane] = max(l.recordsWritten[r.lane], r.score)
			}
		} else if lasts(err) {
			l.logUnreadableLocked(err)
		}
	}
	if f.recordsReadAt >= 0 {
		l.mergeRecordsLocked(l.recordLanes, f.replies[f.recordsReadAt:])
	}
}
