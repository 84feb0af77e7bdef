package lock

import (
	"reflect"
	"testing"

	"redlockd/commands"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// The reader takes every option of the row; the handler must know what each of them means.
func TestDLOCK_ServesEveryOptionOfItsRow(t *testing.T) {
	h := &handlers{commands.Deps{Waits: true}}
	for _, row := range h.rows() {
		if row.Name != "dlock" && row.Name != "dmlock" {
			continue
		}
		options := arg.Options(row.Args)
		if len(options) < 6 {
			t.Errorf("%s has %d options", row.Name, len(options))
		}
		for _, option := range options {
			value := map[string]string{"LIMIT": "3", "TOKEN": "12345678", "WAIT": "0", "HOLD": "1000", "META": "note"}[option.Word]
			h.deps.MaxWait = 1
			words := arg.Read([]string{"DLOCK", option.Word, value}, options)
			var request redlock.LockRequest
			if err := h.lockOption(&words, &request); err != nil || reflect.DeepEqual(request, redlock.LockRequest{}) {
				t.Errorf("%s: %v, %+v", option.Word, err, request)
			}
		}
	}
}
