package access

import (
	"crypto/sha256"
	"errors"
	"testing"
)

// authorize is what the admin endpoint does before it serves a category.
func authorize(users *Users, host, name, password, category string) error {
	visitor, err := users.Authenticate(host, name, password)
	if err == nil && !visitor.May(category) {
		err = ErrNoPermission
	}
	return err
}

func TestAuthorize_NeedsAUserWithTheCategory(t *testing.T) {
	users, err := NewUsers([]User{
		Everything("default", "all"),
		{Name: "scraper", Passwords: [][sha256.Size]byte{sha256.Sum256([]byte("figures"))}, Commands: []string{"read"}},
		{Name: "worker", Passwords: [][sha256.Size]byte{sha256.Sum256([]byte("locks"))}, Keys: []string{"*"}, Commands: []string{"lock"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, password, category string
		want                     error
	}{
		{"default", "all", CategoryAdmin, nil},
		{"scraper", "figures", CategoryRead, nil},
		{"scraper", "figures", CategoryAdmin, ErrNoPermission},
		{"worker", "locks", CategoryRead, ErrNoPermission},
		{"worker", "figures", CategoryRead, errNoLogin},
		{"nobody", "figures", CategoryRead, errNoLogin},
		{"", "", CategoryRead, errNoLogin},
	} {
		if err := authorize(users, "10.0.0.1", c.name, c.password, c.category); !errors.Is(err, c.want) {
			t.Errorf("%s:%s for %s: %v, want %v", c.name, c.password, c.category, err, c.want)
		}
	}
	if err := authorize(nil, "10.0.0.1", "", "", CategoryAdmin); err != nil {
		t.Errorf("without users: %v", err)
	}
}

func TestAuthorize_CountsFailedLoginsOfAnAddress(t *testing.T) {
	users, err := NewUsers([]User{Everything("default", "all")})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if errors.Is(authorize(users, "10.0.0.1", "default", "guess", CategoryRead), ErrTooManyFailures) {
			return
		}
	}
	t.Error("1000 wrong passwords in a row were looked at")
}

// Who was let in and is removed, or has other keys now, is treated so at once.
func TestAuthenticate_ReadsTheUsersAtEveryCheck(t *testing.T) {
	who := Everything("ops", "pw")
	who.Keys = []string{"a:*"}
	users, err := NewUsers([]User{who})
	if err != nil {
		t.Fatal(err)
	}
	v, err := users.Authenticate("10.0.0.1", "ops", "pw")
	if err != nil || v.Name() != "ops" || !v.May(CategoryForce) || !v.KeyFilter()("a:1") || v.KeyFilter()("b:1") {
		t.Errorf("%v: %q, force %t, a:1 %t, b:1 %t", err, v.Name(), v.May(CategoryForce), v.KeyFilter()("a:1"), v.KeyFilter()("b:1"))
	}
	who.Keys, who.Commands = []string{"b:*"}, []string{CategoryRead}
	if err := users.Replace([]User{who}); err != nil {
		t.Fatal(err)
	}
	if v.May(CategoryForce) || !v.May(CategoryRead) || v.KeyFilter()("a:1") || !v.KeyFilter()("b:1") {
		t.Error("another roster, and nothing has changed")
	}
	if err := users.Replace(nil); err != nil {
		t.Fatal(err)
	}
	if v.May(CategoryRead) || v.KeyFilter()("b:1") {
		t.Error("a user who was removed still has the category")
	}
	if open, err := (*Users)(nil).Authenticate("10.0.0.1", "", ""); err != nil || !open.May(CategoryForce) || !open.KeyFilter()("b:1") {
		t.Errorf("without users: %v", err)
	}
}
