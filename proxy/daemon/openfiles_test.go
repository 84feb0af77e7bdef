package daemon

import (
	"strings"
	"testing"
)

const manyFiles = 1 << 20

func TestOpenFiles_BoundTheClients(t *testing.T) {
	config := load(t, "--masters=a,b,c", "--databases=10") // 60 connections to masters
	for _, c := range []struct {
		files   uint64
		clients int
	}{
		{manyFiles, 10000}, {10360, 10000}, {10359, 9999}, {1024, 664}, {721, 361}, {720, 360}, {64, 32}, {1, 1},
	} {
		if got := maxClients(config, c.files); got != c.clients {
			t.Errorf("%d files: %d clients, want %d", c.files, got, c.clients)
		}
	}
	got := strings.Join(warnings(config, 1024), "\n")
	if !strings.Contains(got, "may have 1024, so it serves 664 clients at once and not max-clients, 10000") {
		t.Errorf("got %q", got)
	}
	if n := maxClients(config, openFiles()); proxyOptions(config, 0, nil).MaxClients != n {
		t.Errorf("the port does not serve %d clients", n)
	}
}
