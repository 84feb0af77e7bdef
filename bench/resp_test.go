package main

import "testing"

func TestRESP_QueuesCommandsAsArrays(t *testing.T) {
	c := &respConn{}
	c.queue("DLOCK", "a b")
	c.queue("PING")
	if got, want := string(c.out), "*2\r\n$5\r\nDLOCK\r\n$3\r\na b\r\n*1\r\n$4\r\nPING\r\n"; got != want {
		t.Errorf("queued %q, want %q", got, want)
	}
}
