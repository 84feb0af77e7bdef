package commands

import (
	"crypto/sha256"
	"errors"
	"testing"
)

func TestAdmit_AsksForAUserWithTheCategory(t *testing.T) {
	users, err := NewUsers([]User{
		Everything("default", "all"),
		{Name: "scraper", Passwords: [][sha256.Size]byte{sha256.Sum256([]byte("figures"))}, Commands: []string{"read"}},
		{Name: "worker", Passwords: [][sha256.Size]byte{sha256.Sum256([]byte("locks"))}, Keys: []string{"*"}, Commands: []string{"lock"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(Env{Users: users})
	for _, c := range []struct {
		name, password, category string
		want                     error
	}{
		{"default", "all", CategoryAdmin, nil},
		{"scraper", "figures", CategoryRead, nil},
		{"scraper", "figures", CategoryAdmin, ErrNoPermit},
		{"worker", "locks", CategoryRead, ErrNoPermit},
		{"worker", "figures", CategoryRead, ErrNoLogin},
		{"nobody", "figures", CategoryRead, ErrNoLogin},
		{"", "", CategoryRead, ErrNoLogin},
	} {
		if err := table.Admit("10.0.0.1", c.name, c.password, c.category); !errors.Is(err, c.want) {
			t.Errorf("%s:%s for %s: %v, want %v", c.name, c.password, c.category, err, c.want)
		}
	}
	if err := NewTable(Env{}).Admit("10.0.0.1", "", "", CategoryAdmin); err != nil {
		t.Errorf("without users: %v", err)
	}
}

func TestAdmit_CountsFailedLoginsOfAnAddress(t *testing.T) {
	users, err := NewUsers([]User{Everything("default", "all")})
	if err != nil {
		t.Fatal(err)
	}
	table := NewTable(Env{Users: users})
	for range 1000 {
		if errors.Is(table.Admit("10.0.0.1", "default", "guess", CategoryRead), ErrGuessing) {
			return
		}
	}
	t.Error("1000 wrong passwords in a row were looked at")
}
