package wire

import (
	"crypto/tls"
	"sync/atomic"
	"testing"
)

func TestMaster_ANewcomerProvesItsOwnHost(t *testing.T) {
	reached := func(name string) Master {
		return Master{Name: "a", Address: "a.example:6379", Username: "u", Password: "p", TLS: new(atomic.Pointer[tls.Config]), ServerName: name}
	}
	newcomer := Master{Name: "d", Network: "tcp", Address: "d.example:6379"}
	for name, want := range map[string]string{"a.example": "", "masters.example": "masters.example"} {
		first := reached(name)
		m := newcomer.WithLoginOf(first)
		if m.Name != "d" || m.Address != newcomer.Address || m.Username != "u" || m.Password != "p" || m.TLS != first.TLS || m.ServerName != want {
			t.Errorf("%s: %+v proves %q, want %q", name, m, m.ServerName, want)
		}
	}
	if m := newcomer.WithLoginOf(Master{Username: "u"}); m.TLS != nil || m.Username != "u" {
		t.Errorf("without TLS: %+v", m)
	}
}
