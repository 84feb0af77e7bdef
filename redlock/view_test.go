package redlock

// view_test.go: how clients that know one Redis look at a lock and change it.

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func (d *daemon) look(key Key) (v View, err error) {
	d.t.Helper()
	answered := make(chan struct{})
	d.View(nil, 0, key, func(seen View, e error) { v, err = seen, e; close(answered) })
	receive(d.t, answered)
	return v, err
}

func (d *daemon) write(r WriteRequest) (was bool, err error) {
	d.t.Helper()
	answered := make(chan struct{})
	d.Write(nil, r, func(done bool, e error) { was, err = done, e; close(answered) })
	receive(d.t, answered)
	return was, err
}

func TestView_ShowsTheHoldersValueAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	if v, err := d.look("k"); err != nil || v.Kind != "none" {
		t.Errorf("%+v, %v", v, err)
	}
	g := d.take("k", 20*time.Second)
	v, err := d.look("k")
	if err != nil || v.Kind != "string" || v.Value != g.Token || v.Left > 20*time.Second || v.Left < 10*time.Second {
		t.Errorf("%+v, %v", v, err)
	}
	for i := range 2 {
		c.servers[i].Kill()
		d.await(i, "down")
	}
	if v, err := d.look("k"); err != nil || v.Value != g.Token {
		t.Errorf("with three masters: %+v, %v", v, err)
	}
	c.do(2, "DEL", "k") // two of five have it, and the others might
	_, err = d.look("k")
	noQuorum(t, err, "3 of 5")
}

func TestWrite_ChangesWhatAQuorumHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	if was, err := d.write(WriteRequest{Key: "k"}); was || err != nil {
		t.Errorf("deleted nothing: %v, %v", was, err)
	}
	d.takeAs("k", "token-of-mine", 50*time.Second)
	if was, err := d.write(WriteRequest{Key: "k", Effect: WriteExpires, TTL: 30 * time.Second}); !was || err != nil {
		t.Errorf("shortened: %v, %v", was, err)
	}
	if v, err := d.look("k"); err != nil || v.Left > 30*time.Second {
		t.Errorf("%+v, %v", v, err)
	}
	swap := WriteRequest{Key: "k", Effect: WriteReplaces, Value: "another one", Equal: "not this", TTL: 20 * time.Second}
	if was, err := d.write(swap); was || err != nil {
		t.Errorf("replaced another value: %v, %v", was, err)
	}
	swap.Equal = "token-of-mine"
	if was, err := d.write(swap); !was || err != nil {
		t.Errorf("replaced: %v, %v", was, err)
	}
	if v, err := d.look("k"); err != nil || v.Value != "another one" {
		t.Errorf("%+v, %v", v, err)
	}
	if was, err := d.write(WriteRequest{Key: "k"}); !was || err != nil {
		t.Errorf("deleted: %v, %v", was, err)
	}
	eventually(t, "all is gone", func() bool { return strings.Join(c.copies("k"), "") == "" })
}

func TestWrite_AMinoritysNewValueIsTakenBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, time.Minute)
	d := c.daemon()
	for _, i := range []int{0, 1} {
		c.do(i, "SET", "k", "left over", "PX", 60000)
	}
	if was, err := d.write(WriteRequest{Key: "k", Effect: WriteReplaces, Value: "a new value", TTL: 20 * time.Second}); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	eventually(t, "nobody holds it", func() bool { return strings.Join(c.copies("k"), "") == "" })
}

func TestWrite_LeavesAloneWhatIsNoLock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, time.Minute)
	d := c.daemon()
	for i := range 3 {
		c.do(i, "HSET", "hash", "f", "v")
		c.do(i, "SET", "text", "somebody's data")
	}
	for _, key := range []Key{"hash", "text"} {
		for _, effect := range []WriteEffect{WriteDeletes, WriteExpires, WriteReplaces} {
			_, err := d.write(WriteRequest{Key: key, Effect: effect, Value: "a new value", TTL: time.Minute})
			if !errors.Is(err, ErrWrongType) {
				t.Errorf("%s, %s: %v, want that it is no lock", []string{"delete", "expire", "set"}[effect], key, err)
			}
		}
	}
	if got := c.copies("text"); !slices.Equal(got, []string{"somebody's data", "somebody's data", "somebody's data"}) {
		t.Errorf("%q", got)
	}
	if was, err := d.write(WriteRequest{Key: "text", EndlessToo: true}); !was || err != nil {
		t.Errorf("where locks without an expiry are allowed: %v, %v", was, err)
	}
}
