package commands_test

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/redlock"
)

// FuzzDropIn: whatever a client sends that uses the daemon as one Redis, every
// command is answered exactly once, and nothing is asked of the masters about a
// name that is not a lock's. Lines of data are commands, words end with a NUL.
func FuzzDropIn(f *testing.F) {
	for _, seed := range []string{
		"SET\x00k\x00v\x00NX\x00PX\x001000\nset\x00k\x00v\x00xx\x00ex\x009\nSET\x00k\x00v\x00IFEQ\x00v\x00PXAT\x009223372036854775807",
		"WATCH\x00k\nGET\x00k\nMULTI\nDEL\x00k\nEXEC\nMULTI\nEXPIRE\x00k\nDISCARD\nUNWATCH\nRESET",
		"GET\x00redlockd:fence:k\nGET\x00redlockd:seal\nPTTL\x00k\nTTL\x00k\nEXISTS\x00k\x00k\nTYPE\x00k\nSTRLEN\x00k",
		"EVAL\x00" + drops + "\x001\x00k\x00v\nEVAL\x00" + takes + "\x001\x00k\x00v\x009999\nEVAL\x00return 1\x000\nEVAL\x00x\x00-1\x00k",
		"SCRIPT\x00LOAD\x00return 1\nSCRIPT\x00EXISTS\x00x\nSCRIPT\x00FLUSH\nEVALSHA\x00e0e1f9fabfc9d4800c877a703b823ac0578ff8db\x000\nEVALSHA_RO\x00\x000",
		"DELEX\x00k\x00IFEQ\x00v\nDELIFEQ\x00k\x00v\nDEL\x00a\x00b\nPEXPIRE\x00k\x00-9223372036854775808\nEXPIRE\x00k\x009223372036854775807\nSETNX\x00k\x00v",
		"SET\x00k\x00w\x00IFNE\x00x\x00PX\x0099\nSET\x00k\x00w\x00IFDEQ\x009555e8555c62dcfd\nDELEX\x00k\nDELEX\x00k\x00IFDNE\x000123456789abcdef\nDIGEST\x00k\nHSETNX\x00k\x00f\x00v",
		"MSETEX\x002\x00a\x00v\x00b\x00w\x00NX\x00PX\x0099\nMSETEX\x001\x00redlockd:a\x00v\x00NX\nMSETEX\x002147483647\x00a\x00v\nMSETEX\x00-1\x00a\x00v",
		"CLIENT\x00TRACKING\x00ON\x00OPTIN\nCLIENT\x00CACHING\x00YES\nGET\x00k\nSET\x00k\x00w\x00NX\nCLIENT\x00TRACKING\x00OFF\x00OPTIN\nCLIENT\x00TRACKING\x00ON\x00BCAST\x00PREFIX\x00a\nCLIENT\x00TRACKING\x00ON\x00BCAST\x00PREFIX\x00\nCLIENT\x00TRACKINGINFO",
		"CLIENT\x00TRACKING\x00ON\x00REDIRECT\x000\nCLIENT\x00TRACKING\x00ON\x00REDIRECT\x00-1\nCLIENT\x00TRACKING\x00ON\x00REDIRECT\x001\nCLIENT\x00GETREDIR\nEXISTS\x00k\x00redlockd:k\nHELLO\x003\nGET\x00k\nRESET",
		"HGET\x00k\x00owner-of-a\nHEXISTS\x00redlockd:k\x00f\nHGET\x00k\x00\nGET\x00redisson_lock_token:{k}\nGET\x00redisson_lock_token:{redlockd:k}",
		"EVALSHA\x00" + rlockEnter + "\x001\x00k\x001000\x00owner-of-a\nEVALSHA\x00" + rlockEnter + "\x001\x00redlockd:k\x001000\x00owner-of-a\nEVALSHA\x00" + rlockEnter + "\x00-1\x00k\x00x\x00",
		"EVALSHA\x0073ac2729af29ea9a975f95e8097f7ee9a74cce3d\x002\x00k\x00c\x000\x001\x00owner-of-a\nEVALSHA\x006a3d31570dc6f4b0bd32bcdc8e75667747c6f635\x002\x00k\x00redlockd:k\x0099\x00owner-of-a\x00b",
		nextIDText + "0\nGET\x00nextid:a\n" + nextIDText + "-1\n" + nextIDText + "9223372036854775808\n" + nextIDText + "text",
		"BLPOP\x00lock-signal:\x00inf\nBLPOP\x00lock-signal:a\x001e400\nBLPOP\x00lock-signal:a\x001e300\nBLPOP\x00a\x000",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		masters := &refusing{}
		plain := &oneRedis{fakeLocks: &fakeLocks{}, views: map[redlock.Key]redlock.View{"k": {Kind: "string", Value: "v", Left: time.Second}}}
		inspect := &changing{fakeInspect{view: redlock.LockView{Holders: []redlock.Holder{{Token: levelOne, Confirmed: true}}, Count: 1}}}
		table := newTable(commands.Deps{Locks: masters, IDs: masters, Inspect: inspect, MaxSubscriptions: 2, RedisCompat: plain, LongTTL: commands.PolicyClamp, NoTTL: commands.PolicyAllow})
		client := &commands.Client{ID: 1, Host: "10.0.0.1", Addr: "10.0.0.1:1", Proto: 2}
		for i, line := range strings.Split(string(data), "\n") {
			if i == 16 || client.Closing {
				return
			}
			sink := &fakeCompleter{t: t}
			args := strings.Split(line, "\x00")
			table.Plan(args)
			table.Dispatch(&commands.Call{Args: args, Client: client, Batch: new(redlock.Batch), Completer: sink})
			if plain.free != nil {
				plain.free(true, nil)
				plain.free = nil
			}
			sink.wait(t)
		}
		for _, r := range plain.written {
			if strings.HasPrefix(string(r.Key), access.ReservedPrefix) || r.TTL < 0 {
				t.Fatalf("written: %+v", r)
			}
		}
		for _, key := range inspect.keys {
			if strings.HasPrefix(string(key), access.ReservedPrefix) {
				t.Fatalf("read: %q", key)
			}
		}
	})
}

const nextIDText = "EVALSHA\x00556429c2d8baca516a475ebb22d380cbccae7313\x001\x00nextid:a\x00"

// changing plays masters on which a key has changed as soon as it is tracked.
type changing struct{ fakeInspect }

func (*changing) Listen(int, func(redlock.Event)) func() { return func() {} }

func (*changing) Track(_ int, _ redlock.Key, _ redlock.Seen, report func(bool)) func() {
	report(false)
	return func() {}
}
