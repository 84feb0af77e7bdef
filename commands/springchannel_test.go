package commands_test

import (
	"strings"
	"testing"
	"time"

	"redlockd/commands/access"
	"redlockd/redlock"
)

// happened sends an event in database 0, if it has a listener.
func (f *fakeEvents) happened(kind redlock.EventKind, key string) {
	f.mu.Lock()
	received := f.received[0]
	f.mu.Unlock()
	if received != nil {
		received(redlock.Event{Kind: kind, Key: redlock.Key(key), At: time.UnixMilli(1700000000123)})
	}
}

func TestSUBSCRIBE_SendsARegistryOfSpringThatItsLockIsFree(t *testing.T) {
	for _, c := range []struct{ subscribe, want string }{
		{"SUBSCRIBE reg-channel", `>"message" "reg-channel" "reg:a"`},
		{"PSUBSCRIBE reg-channel:*", `>"pmessage" "reg-channel:*" "reg-channel:reg:a" "reg:a"`},
	} {
		for _, kind := range []redlock.EventKind{redlock.EventReleased, redlock.EventExpired, redlock.EventLost, redlock.EventForced} {
			conversation, events := listening(t)
			received := conversation.messages()
			conversation.say(c.subscribe)
			events.happened(redlock.EventAcquired, "reg:a")
			events.happened(kind, "other:a")
			events.happened(kind, "reg")
			events.happened(kind, "reg:a")
			if got := received(); got != c.want {
				t.Errorf("%s, event %d: received %s, want %s", c.subscribe, kind, got, c.want)
			}
		}
	}
}

func TestSUBSCRIBE_TakesWhatStandsBeforeAnyColonForARegistry(t *testing.T) {
	c, events := listening(t)
	received := c.messages()
	c.say("SUBSCRIBE a-channel a:b-channel")
	events.happened(redlock.EventReleased, "a:b:c")
	if got, want := received(), `>"message" "a-channel" "a:b:c" >"message" "a:b-channel" "a:b:c"`; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
	events.happened(redlock.EventReleased, "a"+strings.Repeat(":", 500))
	if got := received(); strings.Count(got, "message") != 1 {
		t.Errorf("received %s", got)
	}
}

func TestSUBSCRIBE_SendsARegistryOnlyLocksThatItsUserMayUse(t *testing.T) {
	spring := access.Everything("spring", "secret")
	spring.Keys = []string{"reg:open*"}
	c, events := listening(t, spring)
	received := c.messages()
	c.say("AUTH spring secret")
	c.say("PSUBSCRIBE reg-channel:*")
	events.happened(redlock.EventReleased, "reg:shut")
	events.happened(redlock.EventReleased, "reg:open")
	if got, want := received(), `>"pmessage" "reg-channel:*" "reg-channel:reg:open" "reg:open"`; got != want {
		t.Errorf("received %s, want %s", got, want)
	}
}
