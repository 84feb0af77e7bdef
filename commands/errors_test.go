package commands_test

import (
	"fmt"
	"testing"
	"time"

	"redlockd/commands"
	"redlockd/redlock"
)

func TestFailure_SeesThroughWrappedErrors(t *testing.T) {
	for want, err := range map[string]error{
		"nil": fmt.Errorf("key k: %w", redlock.ErrNotHeld),
		"-NOQUORUM key k: 0 of 3 masters answered, 2 needed":                                          fmt.Errorf("key k: %w", &redlock.NoQuorum{Needed: 2, Total: 3}),
		"-TRYLATER the slots 0-9 move from group g1 to g2; nothing was done, try again in 250 ms":     &redlock.NoQuorum{Moving: &redlock.Moving{Slots: "0-9", From: "g1", To: "g2", Rest: 250 * time.Millisecond}},
		"-TRYLATER the slots 7 have moved from group g1 to g2 meanwhile; nothing was done, try again": &redlock.Moving{Slots: "7", From: "g1", To: "g2", Moved: true},
		"-SHUTDOWN key k: " + redlock.ErrShutdown.Error():                                             fmt.Errorf("key k: %w", redlock.ErrShutdown),
	} {
		if got := show(commands.Failure(err)); got != want {
			t.Errorf(" got %s\nwant %s", got, want)
		}
	}
}

func TestTooLate_MirrorsAnErrorWithoutTimes(t *testing.T) {
	if got := show(commands.TooLate(redlock.ErrShutdown, "")); got != "-SHUTDOWN "+redlock.ErrShutdown.Error() {
		t.Error(got)
	}
}
