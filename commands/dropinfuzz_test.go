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
		"BLPOP\x00lock-signal:\x00inf\nBLPOP\x00lock-signal:a\x001e400\nBLPOP\x00lock-signal:a\x001e300\nBLPOP\x00a\x000",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		masters := &refusing{}
		plain := &oneRedis{fakeLocks: &fakeLocks{}, views: map[redlock.Key]redlock.View{"k": {Kind: "string", Value: "v", Left: time.Second}}}
		table := newTable(commands.Deps{Locks: masters, RedisCompat: plain, LongTTL: commands.PolicyClamp, NoTTL: commands.PolicyAllow})
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
		for _, r := range plain.ran {
			for _, key := range r.Script.Keys {
				if strings.HasPrefix(string(key), access.ReservedPrefix) {
					t.Fatalf("ran: %+v", r)
				}
			}
		}
	})
}
