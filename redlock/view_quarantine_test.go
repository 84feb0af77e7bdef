package redlock

// view_quarantine_test.go: what is seen while a master may have forgotten.

import (
	"slices"
	"testing"
	"time"
)

// A quarantined master and another client's unfinished ballot do not make a holder.
func TestView_DoesNotCountAMasterThatForgot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	g := d.take("k", 30*time.Second)
	eventually(t, "all have it", func() bool { return !slices.Contains(c.copies("k"), "") })
	c.do(0, "FLUSHALL")
	d.await(0, "quarantined")
	if v, err := d.look("k"); err != nil || v.Value != g.Token {
		t.Errorf("with two masters that remember: %+v, %v", v, err)
	}
	c.do(1, "DEL", "k")
	for i := range 2 {
		c.do(i, "SET", "k", "somebody else's", "PX", 60000)
	}
	_, err := d.look("k")
	noQuorum(t, err, "2 of 3")
}
