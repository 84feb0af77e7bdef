package configs

import "testing"

func TestLoad_RefusesAnInvalidAdminListen(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--admin-listen", "unix:/run/r"}, "unix socket"},
		{[]string{"--admin-listen", "127.0.0.1"}, "not of that form"},
		{[]string{"--admin-listen", "127.0.0.1:70000"}, "admin-listen"},
		{[]string{"--admin-listen", "127.0.0.1:7379"}, "a port each"},
		{[]string{"--admin-listen", "tls:127.0.0.1:9379"}, "tls-cert"},
		{[]string{"--pprof"}, "pprof is served there alone"},
	} {
		wantRefused(t, c.args, nil, c.says)
	}
	mustLoad(t, []string{"--admin-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--pprof"}, nil)
	mustLoad(t, []string{"--admin-listen", "tls:127.0.0.1:9379", "--tls-cert", "/c", "--tls-key", "/k"}, nil)
}
