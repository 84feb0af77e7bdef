package sim

import "redlockd/redlock"

// engine is what clients use of a daemon: a redlock.Locker, or a groups.Router over two of them.
type engine interface {
	Lock(b *redlock.Batch, q redlock.LockRequest, done redlock.LockDone)
	Wait(b *redlock.Batch, q redlock.LockRequest, done redlock.LockDone) (leave func())
	Unlock(b *redlock.Batch, q redlock.UnlockRequest, done redlock.UnlockDone)
	Extend(b *redlock.Batch, q redlock.ExtendRequest, done redlock.ExtendDone)
	GiveBack(g redlock.Grant)

	NextID(b *redlock.Batch, q redlock.IDRequest, done redlock.IDDone)
	ReadCounter(db int, name redlock.Key, done func(redlock.Counter, error))
	Reseed(db int, name redlock.Key, value int64, done func(error))
	DeleteCounter(db int, name redlock.Key, confirm int64, done func([]redlock.CounterFate, error))

	Work(b *redlock.Batch, q redlock.WorkRequest, done redlock.WorkCompletion) (leave func())
	WorkGiveBack(w redlock.Work)
	WorkExtend(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkExtendDone)
	WorkFail(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkEndDone)
	WorkDone(b *redlock.Batch, q redlock.WorkEndRequest, done redlock.WorkEndDone)

	View(b *redlock.Batch, db int, key redlock.Key, done redlock.ViewDone)
	Write(b *redlock.Batch, q redlock.WriteRequest, done redlock.WriteDone)

	EndWaits()
	Waiters() int
	Holds() int
}
