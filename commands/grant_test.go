// Grants with a chosen validity, for tests.

package commands_test

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"redlockd/pool"
	"redlockd/redlock"
)

// stillClock is a clock that stands until a test moves it.
type stillClock struct{ now time.Duration }

func (c *stillClock) Now() time.Duration { return c.now }

func (c *stillClock) AfterFunc(time.Duration, func()) pool.Timer {
	panic("commands set no timers")
}

// grant is a fresh grant, asked for now, with a validity that clock uses up. Only package
// redlock can make one, since a validity must not be invented anywhere else;
// a test has to reach past that.
func grant(t *testing.T, token redlock.Token, fence redlock.Fence, validity time.Duration, clock *stillClock) redlock.Grant {
	t.Helper()
	g := redlock.Grant{Token: token, Fence: fence, Fresh: true}
	setLease(t, reflect.ValueOf(&g).Elem(), validity, clock)
	if got := g.Validity(); got != validity {
		t.Fatalf("a grant made for %v has a validity of %v", validity, got)
	}
	return g
}

// setLease gives a grant or a lease the fields that its validity is computed from.
func setLease(t *testing.T, of reflect.Value, validity time.Duration, clock *stillClock) {
	t.Helper()
	set(t, of, "until", clock.now+validity)
	set(t, of, "start", clock.now)
	set(t, of, "ttl", time.Second)
	set(t, of, "clock", pool.Clock(clock))
}

func set[V any](t *testing.T, of reflect.Value, name string, value V) {
	t.Helper()
	field := of.FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[V]() {
		t.Fatalf("%v has no field %s of type %v any more", of.Type(), name, reflect.TypeFor[V]())
	}
	*(*V)(unsafe.Pointer(field.UnsafeAddr())) = value
}
