package wire

import (
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestMaster_ANewcomerProvesItsOwnHost(t *testing.T) {
	reached := func(name string) Master {
		return Master{Name: "a", Address: "a.example:6379", Username: "u", Password: "p", TLS: new(atomic.Pointer[tls.Config]), ServerName: name}
	}
	joining := Master{Name: "d", Network: "tcp", Address: "d.example:6379"}
	for name, want := range map[string]string{"a.example": "", "masters.example": "masters.example"} {
		first := reached(name)
		m := joining.WithLoginOf(first)
		if m.Name != "d" || m.Address != joining.Address || m.Username != "u" || m.Password != "p" || m.TLS != first.TLS || m.ServerName != want {
			t.Errorf("%s: %+v proves %q, want %q", name, m, m.ServerName, want)
		}
	}
	if m := joining.WithLoginOf(Master{Username: "u"}); m.TLS != nil || m.Username != "u" {
		t.Errorf("without TLS: %+v", m)
	}
}

// Not parallel: no file can be opened meanwhile.
func TestDialMaster_NamesTheLimitOfOpenFiles(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	conn, err := dialMaster(t.Context(), Master{Name: "a", Network: "tcp", Address: "127.0.0.1:1"}, time.Second)
	if again := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); again != nil {
		t.Fatal(again)
	}
	if conn != nil || !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "too many open files: the limit of this program, not of the master: raise it (ulimit -n, LimitNOFILE)") {
		t.Error(conn, err)
	}
}
