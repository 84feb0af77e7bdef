package masterlog

import (
	"fmt"
	"testing"
	"time"

	"redlockd/pool/wire"
)

func TestErrors_HasTheServersOwnRefusals(t *testing.T) {
	for text, want := range map[string]bool{
		"NOPERM User redlockd has no permissions to run the 'set' command":                                                                     true,
		"NOPERM this user has no permissions to run the 'set' command or its subcommand":                                                       true,
		"ERR The user executing the script can't run this command or subcommand script: 0a9f, on @user_script:18.":                             true,
		"ERR ACL failure in script: User redlockd has no permissions to run the 'zrangebyscore' command script: 0a9f, on @user_script:18.":     true,
		"ERR Error running script (call to f_0a9f): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.": true,
		"OOM command not allowed when used memory > 'maxmemory'. script: 0a9f, on @user_script:1.":                                             true,
		"READONLY You can't write against a read only replica.":                                                                                true,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":                                     true,
		"NOREPLICAS Not enough good replicas to write.":                                                                                        true,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                                    false,
		"NOSCRIPT No matching script. Please use EVAL.":                                                                                        false,
		"ERR the lock OOM is not mine": false,
		"OOMPH":                        false,
		"ERR Error compiling script (new function): user_script:1: '=' expected near 'x'": false,
	} {
		if got := IsServerRefusal(wire.MasterError(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestErrors_HasEachErrorOnceAMinuteAndIsBounded(t *testing.T) {
	var r ErrorLog
	for _, step := range []struct {
		text string
		at   time.Duration
		want bool
	}{
		{"one", time.Hour, true}, {"one", time.Hour + 59*time.Second, false}, {"two", time.Hour + 59*time.Second, true},
		{"one", time.Hour + time.Minute, true}, {"one", time.Hour + time.Minute, false},
	} {
		if got := r.ShouldLog(step.text, step.at); got != step.want {
			t.Errorf("%s at %s: %v", step.text, step.at, got)
		}
	}
	told := 0
	for i := range 100 {
		if r.ShouldLog(fmt.Sprint("key ", i), 2*time.Hour) {
			told++
		}
	}
	if told != maxErrorTexts {
		t.Errorf("%d texts in a minute, want %d", told, maxErrorTexts)
	}
}
