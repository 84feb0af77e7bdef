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
