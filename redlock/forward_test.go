package redlock

// forward_test.go: commands as they are, on every master.

import (
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

func (d *daemon) forward(r ForwardRequest) (reply pool.Reply, err error) {
	d.t.Helper()
	answered := make(chan struct{})
	d.Forward(nil, r, func(one pool.Reply, e error) { reply, err = one, e; close(answered) })
	receive(d.t, answered)
	return reply, err
}

func TestForward_RunsOnEveryMasterAndAnswersWhatAQuorumDoes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	c.do(0, "RPUSH", "l", "left over")
	push := ForwardRequest{Words: []string{"RPUSH", "l", "a", "b"}, Names: []int{1}}
	if r, err := d.forward(push); err != nil || r.Int != 2 {
		t.Errorf("%+v, %v; want what two of three answered", r, err)
	}
	eventually(t, "all masters have it", func() bool { return c.do(0, "LLEN", "l") == int64(3) })
	if r, err := d.forward(ForwardRequest{Words: []string{"GET", "l"}, Names: []int{1}}); err != nil || !saysWrongType(r) {
		t.Errorf("%+v, %v; want the masters' error", r, err)
	}
	c.do(1, "DEL", "l")
	if r, err := d.forward(ForwardRequest{Words: []string{"LLEN", "l"}, Names: []int{1}}); err == nil {
		t.Errorf("%+v of three masters that differ", r)
	} else {
		noQuorum(t, err, "3 of 3", "alike")
	}
	c.servers[0].Kill()
	c.servers[1].Kill()
	d.await(0, "down")
	d.await(1, "down")
	_, err := d.forward(push)
	noQuorum(t, err, "1 of 3")
}

func TestForward_GivesNamesTheKeyPrefixAndWakesTheirWaiters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	d.engine.KeyPrefix = "p:"
	d.take("k", 20*time.Second)
	waits := make(chan bool, 1) // it answers once
	d.AwaitFree(AwaitRequest{Key: "k", Timeout: time.Minute}, func(free bool, err error) { waits <- free && err == nil })
	if r, err := d.forward(ForwardRequest{Words: []string{"DEL", "k"}, Names: []int{1}}); err != nil || r.Int != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if !receive(t, waits) {
		t.Error("the waiter of the deleted one was not woken")
	}
	eventually(t, "no master has it", func() bool { return strings.Join(c.copies("p:k"), "") == "" })
}
