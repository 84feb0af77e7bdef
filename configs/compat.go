package configs

// compat.go contains --compat-test, which is valid only for listeners of this machine.

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// compatTestOption is for test suites of lock libraries.
func compatTestOption() option {
	o := switchOption("compat-test", "", func(c *Config) *bool { return &c.CompatTest })
	o.allowed = "true, false; true only if listen has addresses of this machine alone"
	o.check = func(c *Config) []problem {
		if open := slices.IndexFunc(c.Listen, Reachable); c.CompatTest && open >= 0 {
			return []problem{{
				text:   "is refused while listen has " + strconv.Quote(c.Listen[open]) + ": any client may overwrite any lock and empty the masters",
				advice: "listen on 127.0.0.1, [::1] or a unix socket, and never use it in production",
			}}
		}
		return nil
	}
	return o
}

// Reachable reports whether other machines may reach an address of Listen.
func Reachable(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return false
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(address, tlsPrefix))
	if err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !ip.IsLoopback())
}
