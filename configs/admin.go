package configs

// admin.go contains the options of the admin endpoint.

import "strings"

func adminOption() option {
	return option{
		name: "admin-listen", argument: "ADDRESS", help: "page, metrics, health by HTTP; profiles",
		allowed: "host:port, :port, tls:host:port", advice: "write for example 127.0.0.1:9379",
		set:   setter(decodeText, func(c *Config) *string { return &c.AdminListen }),
		show:  func(c *Config) string { return c.AdminListen },
		check: checkAdmin,
	}
}

func checkAdmin(c *Config) []problem {
	switch {
	case c.AdminListen == "" && c.Pprof:
		return []problem{{text: "is missing, and pprof is served there alone"}}
	case c.AdminListen == "":
		return nil
	case strings.HasPrefix(c.AdminListen, "unix:"):
		return []problem{{text: "is a unix socket, on which HTTP is not served"}}
	}
	if text := listenProblem(c.AdminListen); text != "" {
		return []problem{{text: text}}
	}
	for _, address := range c.Listen {
		if address == c.AdminListen && !strings.HasSuffix(address, ":0") {
			return []problem{{text: "is an address of listen: HTTP and RESP need a port each"}}
		}
	}
	return nil
}
