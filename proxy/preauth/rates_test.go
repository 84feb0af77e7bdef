package preauth

import (
	"net"
	"testing"
	"time"
)

func TestConnRates_AreCountedByAddressAndRemoved(t *testing.T) {
	now := time.Unix(1, 0)
	a := NewConnRates(10, func() time.Time { return now })
	from := func(ip string) bool { return a.Allow(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}) }
	for i := range 10 * connBurst {
		if !from("10.0.0.1") {
			t.Fatalf("number %d at once is turned away", i)
		}
	}
	if from("10.0.0.1") || !from("10.0.0.2") || !a.Allow(&net.UnixAddr{}) {
		t.Error("the burst is not the address' own")
	}
	now = now.Add(100 * time.Millisecond)
	if !from("10.0.0.1") || from("10.0.0.1") {
		t.Error("a tenth of a second is not worth one connection")
	}
	now = now.Add(time.Minute)
	for i := range minSweepSize {
		from(net.IPv4(10, 1, byte(i>>8), byte(i)).String())
		now = now.Add(time.Second)
	}
	if n := len(a.hosts); n > 3 {
		t.Errorf("%d addresses are remembered whose limiters have all tokens", n)
	}
}

// A program that connects for each request logs in each time.
func TestConnRates_AnAddressThatLogsInMayConnectMoreOften(t *testing.T) {
	now := time.Unix(1, 0)
	a := NewConnRates(10, func() time.Time { return now })
	let := func(ip string, n int) (allowed int) {
		for range n {
			if a.Allow(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}) {
				allowed++
			}
		}
		return allowed
	}
	if got := let("10.0.0.1", 200); got != 10*connBurst {
		t.Errorf("%d before the login", got)
	}
	a.Trust("10.0.0.1")
	if got := let("10.0.0.1", 1000); got != 10*connBurst*trustedConns {
		t.Errorf("%d after it", got)
	}
	a.Trust("10.0.0.1")
	if got := let("10.0.0.1", 100); got != 0 {
		t.Errorf("each login is worth %d", got)
	}
	now = now.Add(time.Second)
	if got := let("10.0.0.1", 1000); got != 10*trustedConns {
		t.Errorf("%d a second later", got)
	}
	if got := let("10.0.0.2", 200); got != 10*connBurst {
		t.Errorf("%d of another address", got)
	}
}
