package redlock

import (
	"errors"
	"testing"
	"time"
)

// A plain try does not read the key. Where it is refused for longer than any lease lasts, the
// daemon looks at the key once, and from then on with every refused try.
func TestLock_OfDataThatIsNoLockEndsWithWrongType(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Second)
	d := c.daemon()
	for i := range c.servers {
		c.do(i, "RPUSH", "list", "data")
		c.do(i, "SET", "by hand", "no expiry")
	}
	if _, err := d.lock("list", time.Second); !errors.Is(err, ErrHeld) {
		t.Fatalf("the first try: %v, want ErrHeld", err)
	}
	eventually(t, "the daemon looks at the key", func() bool {
		_, err := d.lock("list", time.Second)
		if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrWrongType) {
			t.Fatal(err)
		}
		if _, err := d.lock("by hand", time.Second); !errors.Is(err, ErrHeld) {
			t.Fatalf("a lock without an expiry: %v, want ErrHeld", err)
		}
		return errors.Is(err, ErrWrongType)
	})
	looks := c.servers.Calls(t, "evalsha")
	for range 3 {
		if _, err := d.lock("list", time.Second); !errors.Is(err, ErrWrongType) {
			t.Errorf("from then on: %v, want ErrWrongType", err)
		}
		if _, err := d.lock("by hand", time.Second); !errors.Is(err, ErrHeld) {
			t.Errorf("a lock without an expiry: %v, want ErrHeld", err)
		}
	}
	if n := c.servers.Calls(t, "evalsha") - looks; n > 2*3*3 {
		t.Errorf("%d scripts for six tries on three masters", n)
	}
	for i := range c.servers {
		c.do(i, "DEL", "list")
	}
	if _, err := d.lock("list", time.Second); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
}
