package lock

import (
	"reflect"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// The reader takes every option of the row; the handler must know what each of them means.
func TestDLOCK_ServesEveryOptionOfItsRow(t *testing.T) {
	h := &handlers{}
	for _, row := range Rows(commands.Deps{}) {
		if row.Name != "dlock" && row.Name != "dmlock" {
			continue
		}
		options := arg.Options(row.Args)
		if len(options) < 6 {
			t.Errorf("%s has %d options", row.Name, len(options))
		}
		for _, option := range options {
			given := []string{"DLOCK", option.Word}
			if value := map[string]string{"LIMIT": "3", "TOKEN": "12345678", "WAIT": "0", "HOLD": "1000", "MAXHOLD": "1000", "META": "note", "DELAY": "10"}[option.Word]; value != "" {
				given = append(given, value)
			}
			if option.Word == "REENTRANT" {
				given = append(given, "TOKEN", "12345678")
			}
			h.deps.MaxWait, h.deps.MaxTTL = 1, time.Minute
			words := arg.Read(given, options)
			var request redlock.LockRequest
			if h.lockOptions(&words, &request); words.Err() != nil || reflect.DeepEqual(request, redlock.LockRequest{}) {
				t.Errorf("%s: %v, %+v", option.Word, words.Err(), request)
			}
		}
	}
}
