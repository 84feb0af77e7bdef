package commands_test

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// FuzzDispatch: whatever words a client sends, every command is answered exactly
// once and nothing panics; and as long as a client has not signed in, nothing it
// sends reaches the masters. Lines of data are commands, words end with a NUL.
func FuzzDispatch(f *testing.F) {
	for _, seed := range []string{
		"DLOCK\x00k\x0030000", "DLOCK\x00k\x001000\x00TOKEN\x00abcdefgh\x00META\x00m\nDUNLOCK\x00k\nDEXTEND\x00k\x00abcdefgh\x0020",
		"HELLO\x003\x00AUTH\x00low\x00new\x00SETNAME\x00n\nDLOCK\x00a:1\x0050\nRESET\nDLOCK\x00a:1\x0050",
		"AUTH\x00pw\nDNEXTID\x00c\x00COUNT\x005\nDIDS\nDIDS\x00c\nDIDRESEED\x00c\x009223372036854775807",
		"auth\x00default\x00pw\nDWORK\x00w\x00100\x00MAX\x003\x00WAIT\x000\x00KEEP\x005\nDWORKDONE\x00w\x00t\nDWORKINFO\x00w",
		"AUTH\x00x\nAUTH\x00y\nAUTH\x00z\nPING", "SELECT\x0099999999999\nSELECT\x00-1\nSELECT\x003",
		"SUBSCRIBE\x00a\x00b\nPING\nGET\x00a\nUNSUBSCRIBE\nRESET\nQUIT", "CLIENT\x00REPLY\x00SKIP\nPING\nCLIENT\x00LIST\nCLIENT\x00KILL\x00ID\x001",
		"COMMAND\x00DOCS\x00dlock\nCOMMAND\x00INFO\nINFO\x00everything\nCONFIG\x00GET\x00*\nHELLO\x004\nHELLO\x00x",
		"AUTH\x00pw\nDLOCK\x00k\x001000\x00REENTRANT\x00TOKEN\x00owner-of-a\x00DELAY\x005\nDUNLOCK\x00k\x00owner-of-a\x00REENTRANT\nDUNLOCK\x00k\x00owner-of-a\x00KEEP\x005\nDMETA\x00k\x00owner-of-a\x00text\nDMLOCK\x001000\x002\x00a\x00b\x00FAIR\x00DELAY\x009223372036854775808",
		"AUTH\x00pw\nCOMMAND\x00GETKEYS\x00EVAL\x00s\x00-1\nCOMMAND\x00GETKEYS\x00EVAL\x00s\x009223372036854775807\x00k\nCOMMAND\x00GETKEYSANDFLAGS\x00MSETEX\x002\x00a\x00b\nCOMMAND\x00GETKEYS\x00COMMAND\x00GETKEYS\x00GET\x00k\nCLUSTER\x00GETKEYSINSLOT\x0016384\x00-1\nCLUSTER\x00REPLICAS\x00x",
		"\x00\n\nDLOCK\x00\x001\nDLOCK\x00redlockd:x\x00100\n\xff\xfe\x00\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		users, err := access.NewUsers([]access.User{access.Everything("default", "pw"), low()})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		users.Now = func() time.Time { return at }
		masters := &refusing{}
		table := newTable(commands.Deps{Locks: masters, IDs: masters, Works: masters, Users: users, Cluster: division})
		client := &commands.Client{ID: 1, Host: "10.0.0.1", Addr: "10.0.0.1:1", Proto: 2}
		for i, line := range strings.Split(string(data), "\n") {
			if i == 64 || client.Closing {
				return
			}
			known, asked := table.Authenticated(client), masters.asked
			sink := &fakeCompleter{t: t}
			args := strings.Split(line, "\x00")
			table.Plan(args)
			table.Dispatch(&commands.Call{Args: args, Client: client, Batch: new(redlock.Batch), Completer: sink})
			sink.read(t)
			if !known && masters.asked != asked && !table.Authenticated(client) {
				t.Fatalf("%q reached the masters although no user had signed in", args)
			}
		}
	})
}

// refusing plays masters that answer everything at once, with a "no".
type refusing struct {
	asked int
}

func (r *refusing) Lock(_ *redlock.Batch, _ redlock.LockRequest, done redlock.LockDone) {
	r.asked++
	done(redlock.Grant{}, redlock.ErrHeld)
}

func (r *refusing) Wait(b *redlock.Batch, request redlock.LockRequest, done redlock.LockDone) (leave func()) {
	r.Lock(b, request, done)
	return func() {}
}

func (r *refusing) Unlock(_ *redlock.Batch, _ redlock.UnlockRequest, done redlock.UnlockDone) {
	r.asked++
	done(false, nil)
}

func (r *refusing) Extend(_ *redlock.Batch, _ redlock.ExtendRequest, done redlock.ExtendDone) {
	r.asked++
	done(redlock.Grant{}, redlock.ErrNotHeld)
}

func (r *refusing) GiveBack(redlock.Grant) {}

func (r *refusing) NextID(_ *redlock.Batch, _ redlock.IDRequest, done redlock.IDDone) {
	r.asked++
	done(1, nil)
}

func (r *refusing) ReadCounter(_ int, name redlock.Key, done func(redlock.Counter, error)) {
	r.asked++
	done(redlock.Counter{Name: name}, nil)
}

func (r *refusing) ListCounters(_ int, done func([]redlock.Key, error)) {
	r.asked++
	done([]redlock.Key{"a:1", "b"}, nil)
}

func (r *refusing) DeleteCounter(_ int, _ redlock.Key, _ int64, done func([]redlock.CounterFate, error)) {
	r.asked++
	done(nil, nil)
}

func (r *refusing) Reseed(_ int, _ redlock.Key, _ int64, done func(error)) {
	r.asked++
	done(nil)
}

func (r *refusing) Work(_ *redlock.Batch, w redlock.WorkRequest, done redlock.WorkCompletion) (leave func()) {
	r.asked++
	done(redlock.Work{State: redlock.WorkExhausted, Key: w.Key, Attempt: w.Max}, nil)
	return func() {}
}

func (r *refusing) WorkGiveBack(redlock.Work) {}

func (r *refusing) ReadWork(_ int, _ redlock.Key, done func(redlock.WorkView, error)) {
	r.asked++
	done(redlock.WorkView{}, nil)
}

func (r *refusing) WorkDone(_ *redlock.Batch, _ redlock.WorkEndRequest, done redlock.WorkEndDone) {
	r.asked++
	done(true, nil)
}

func (r *refusing) WorkFail(_ *redlock.Batch, _ redlock.WorkEndRequest, done redlock.WorkEndDone) {
	r.asked++
	done(false, nil)
}

func (r *refusing) WorkExtend(_ *redlock.Batch, _ redlock.WorkEndRequest, done redlock.WorkExtendDone) {
	r.asked++
	done(redlock.Work{}, redlock.ErrNotHeld)
}
