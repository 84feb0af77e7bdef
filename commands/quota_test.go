package commands

import (
	"testing"
	"time"
)

// A lock and an attempt at work of the same name are two things to hold.
func TestQuota_AnAttemptAtWorkTakesRoomBesideALockOfItsName(t *testing.T) {
	user := low()
	user.Held = 2
	_, users := guarded(t, user)
	now := time.Now()
	users.now = func() time.Time { return now }
	who, lock, work := users.find("low"), heldKey{0, "a:1"}, workRoom(0, "a:1")
	take := func(at heldKey) (place, bool) {
		room, err := users.take(who, at)
		return room, err == nil
	}
	room, _ := take(lock)
	room.fillFor(lock, "lock-token", time.Minute)
	room, ok := take(work)
	if !ok {
		t.Fatal("the lock of that name fills the room of the attempt")
	}
	room.fillFor(work, "work-token", time.Second)
	if _, ok := take(workRoom(0, "a:2")); ok {
		t.Error("a third thing is held")
	}
	if _, ok := take(workRoom(1, "a:1")); ok {
		t.Error("the attempt of another database takes the same room")
	}
	users.released(work, "lock-token")
	if _, ok := take(heldKey{0, "a:2"}); ok {
		t.Error("the lock's token ended the attempt")
	}
	users.prolonged(work, "work-token", time.Hour)
	now = now.Add(2 * time.Second)
	if _, ok := take(heldKey{0, "a:2"}); ok {
		t.Error("an attempt that was extended has lost its room")
	}
	users.released(work, "work-token")
	if _, ok := take(heldKey{0, "a:2"}); !ok {
		t.Error("the room of an ended attempt stays taken")
	}
}

func TestQuota_NoLockHasTheNameOfAnAttemptsRoom(t *testing.T) {
	if _, err := parseKey(string(workRoom(0, "a:1").key)); err == nil {
		t.Error("a client may lock a name that stands for an attempt")
	}
}
