package configs

// listen.go contains --listen and the check of its addresses.

import (
	"net"
	"strconv"
	"strings"
)

// tlsPrefix marks an address that uses TLS.
const tlsPrefix = "tls:"

func listenOption() option {
	return option{
		name: "listen", argument: "ADDRESS", list: true,
		help:    "[tls:]host:port, unix:/path",
		allowed: "host:port, :port, tls:host:port, unix:/path", advice: "write for example 127.0.0.1:7379 or :7379",
		set:   setListen,
		show:  func(c *Config) string { return strings.Join(c.Listen, ",") },
		check: checkListen,
	}
}

func setListen(c *Config, value any) []problem {
	given, err := decodeList(value)
	if err != nil {
		return []problem{{text: err.Error()}}
	}
	var list []string
	for _, text := range given {
		for _, address := range strings.Split(text, ",") {
			list = append(list, strings.TrimSpace(address))
		}
	}
	c.Listen = list
	return nil
}

func checkListen(c *Config) []problem {
	if len(c.Listen) == 0 {
		return []problem{{text: "is empty, so no client could connect"}}
	}
	var problems []problem
	seen := make(map[string]bool)
	for _, address := range c.Listen {
		shown := strconv.Quote(address)
		if text := listenProblem(address); text != "" {
			problems = append(problems, problem{value: shown, text: text})
		} else if seen[address] && !strings.HasSuffix(address, ":0") {
			problems = append(problems, problem{value: shown, text: "is given twice", advice: "leave one out"})
		}
		seen[address] = true
	}
	return problems
}

// listenProblem returns what is wrong with one address, "" if it is valid.
func listenProblem(address string) string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return socketPathProblem(path)
	}
	address = strings.TrimPrefix(address, tlsPrefix)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "is not of that form"
	}
	if text := portProblem(port, 0); text != "" {
		return text
	}
	if host == "" {
		return ""
	}
	return hostProblem(host)
}
