package cli

import (
	"io"
	"strings"
	"testing"
)

func TestHashPassword_ReadsOneLineAndPrintsTheSetting(t *testing.T) {
	for _, c := range []struct {
		args     []string
		in, want string
	}{
		{nil, "secret\nmore", "password-argon2id = \"hash of secret\"\n"},
		{nil, "secret", "password-argon2id = \"hash of secret\"\n"},
		{[]string{"--sha256"}, "change-me\r\n", "password-sha256 = \"e2186dbdb1bb4193608605e84f33208765b5693b55edd4f730a719a100eeea6f\"\n"},
	} {
		var out strings.Builder
		a := App{In: strings.NewReader(c.in), Out: &out, HashPassword: func(p string) string { return "hash of " + p }}
		if err := a.Run(t.Context(), append([]string{"hash-password"}, c.args...)); err != nil || out.String() != c.want {
			t.Errorf("%q from %q: %q, %v; want %q", c.args, c.in, out.String(), err, c.want)
		}
	}
}

func TestHashPassword_RefusesWhatNoClientCouldSend(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "has 0 bytes, allowed are 1 to 512",
		"\n":                       "has 0 bytes",
		strings.Repeat("x", 513):   "has 513 bytes",
		strings.Repeat("x", 9_000): "allowed are 1 to 512",
	} {
		a := App{In: strings.NewReader(in), Out: io.Discard}
		if err := a.Run(t.Context(), []string{"hash-password"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", len(in), err, want)
		}
	}
	a := App{In: strings.NewReader("x"), Out: io.Discard}
	if err := a.Run(t.Context(), []string{"hash-password", "S3CR3T"}); err == nil || strings.Contains(err.Error(), "S3CR3T") || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("a password as an argument: %v", err)
	}
}
