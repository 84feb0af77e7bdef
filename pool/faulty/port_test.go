package faulty

import (
	"net"
	"testing"
	"time"
)

// A copy of a closed socket in a program that is being started keeps its port in use.
func TestReservation_ListensAlthoughThePortIsInUseForAMoment(t *testing.T) {
	r, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer r.release()
	copied, err := net.Listen("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(portPause/2, func() { copied.Close() })
	ln, err := r.listen()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}
