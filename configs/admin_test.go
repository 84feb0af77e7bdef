package configs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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

func TestLoad_RefusesAnAddressToWhichNoClientCanConnect(t *testing.T) {
	for address, says := range map[string]string{
		"10.0.0.1": "is not host:port", ":7379": "has no host", "10.0.0.1:0": "has a port that is not a number from 1 to 65535", "a b:1": "has a host that is neither",
		"0.0.0.0:7379": "stands for all addresses", "[::]:7379": "stands for all addresses",
	} {
		wantRefused(t, []string{"--cluster-announce", address}, nil, says)
	}
	for _, address := range []string{"10.0.0.1:7379", "redlockd-0.locks:7379", "[2001:db8::1]:7379"} {
		if got := mustLoad(t, []string{"--cluster-announce", address}, nil).ClusterAnnounce; got != address {
			t.Errorf("got %q", got)
		}
	}
}

func TestLoad_ChecksKeyPrefixes(t *testing.T) {
	for _, c := range []struct{ own, all, says string }{
		{"ordres:", "jobs:,orders:", `key-prefix = ordres: (from --key-prefix): is none of key-prefixes; allowed: 0 to 64 bytes without blanks and control characters, not redlockd: or a beginning of it; the nearest one is "orders:"`},
		{"a:", "a:,a:b:", `has "a:b:", which begins with "a:"`},
		{"a:", "a:,a:", `has "a:" twice`},
		{"a:", "a:,", `has "a:", which begins with ""`},
		{"a:", "a:,b c", "holds a blank"},
		{"redlockd:", "redlockd:", `has "redlockd:": a lock would get the name of a key of redlockd's own`},
		{"a:", "a:,redlockd:b:", `has "redlockd:b:"`},
		{"a:", "a:,redlock", `has "redlock"`},
		{"a:", "a:," + strings.Repeat("x", maxKeyPrefix+1), "has 65 bytes"},
	} {
		wantRefused(t, []string{"--key-prefix", c.own, "--key-prefixes", c.all}, nil, c.says)
	}
	if got := mustLoad(t, []string{"--key-prefixes", ",jobs:"}, nil).KeyPrefixes; !slices.Equal(got, []string{"", "jobs:"}) {
		t.Errorf("got %q", got)
	}
}

func TestLoad_ChecksMetricsPrefixes(t *testing.T) {
	many := make([]string, maxPrefixes+1)
	for i := range many {
		many[i] = fmt.Sprint("p", i, ":")
	}
	for value, says := range map[string]string{
		"":                               "is empty",
		"orders:,,jobs:":                 "is empty; allowed",
		"orders:,jobs:,orders:":          `= "orders:" (from --metrics-prefixes): is given twice`,
		"orders:,other":                  `= "other" (from --metrics-prefixes): is the label of keys without a prefix`,
		"orders:*":                       `= "orders:*" (from --metrics-prefixes): ends with *`,
		"a b":                            "holds a blank",
		"a\xff":                          "not UTF-8",
		strings.Repeat("x", maxPrefix+1): "has 65 bytes, at most 64 are allowed",
		strings.Join(many, ","):          "has 33 prefixes, too many; allowed: at most 32 beginnings of keys",
	} {
		wantRefused(t, []string{"--admin-listen", "127.0.0.1:0", "--metrics-prefixes", value}, nil, says)
	}
	wantRefused(t, []string{"--metrics-prefixes", "orders:"}, nil, "has no effect: metrics are served at admin-listen alone")
	args := []string{"--admin-listen", "127.0.0.1:0", "--metrics-prefixes", "orders:, jobs:"}
	if got := mustLoad(t, args, nil).MetricsPrefixes; !slices.Equal(got, []string{"orders:", "jobs:"}) {
		t.Errorf("got %q", got)
	}
	args[3] = strings.Join(many[:maxPrefixes], ",")
	mustLoad(t, args, nil)
}
