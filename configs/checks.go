package configs

// checks.go contains the checks of options beyond their range.

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func checkListen(c *Config) error {
	problems := []error{refuse(len(c.Listen) == 0, "is empty, so no client could connect")}
	for i, address := range c.Listen {
		twice := slices.Contains(c.Listen[:i], address) && !strings.HasSuffix(address, ":0")
		problems = append(problems, about(strconv.Quote(address), cmp.Or(checkAddress(address), refuse(twice, "is given twice", "leave one out"))))
	}
	return errors.Join(problems...)
}

// tlsPrefix marks an address that uses TLS.
const tlsPrefix = "tls:"

func checkAddress(address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return checkSocketPath(path)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(address, tlsPrefix))
	return cmp.Or(refuse(err != nil, "is not of that form"), checkPort(port, 0), checkHost(cmp.Or(host, "localhost")))
}

// Reachable reports whether other machines may reach an address of Listen.
func Reachable(address string) bool {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(address, tlsPrefix))
	ip, notIP := netip.ParseAddr(host)
	return !strings.HasPrefix(address, "unix:") && (err != nil || host != "localhost" && (notIP != nil || !ip.IsLoopback()))
}

// checkAnnounce accepts what other machines can connect to.
func checkAnnounce(c *Config) error {
	if c.ClusterAnnounce == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.ClusterAnnounce)
	ip, _ := netip.ParseAddr(host)
	return cmp.Or(refuse(err != nil, "is not host:port"), checkPort(port, 1), checkHost(host),
		refuse(ip.IsUnspecified(), "has a host that stands for all addresses of this machine, to which no client can connect"))
}

func checkAdmin(c *Config) error {
	if c.AdminListen == "" {
		return refuse(c.Pprof, "is missing, and pprof is served there alone")
	}
	twice := slices.Contains(c.Listen, c.AdminListen) && !strings.HasSuffix(c.AdminListen, ":0")
	return cmp.Or(refuse(strings.HasPrefix(c.AdminListen, "unix:"), "is a unix socket, on which HTTP is not served"),
		checkAddress(c.AdminListen),
		refuse(twice, "is an address of listen: HTTP and RESP need a port each"))
}

// Limits of MetricsPrefixes: every prefix is a label value, which Prometheus keeps.
const maxPrefixes, maxPrefix = 32, 64

func checkPrefixes(c *Config) error {
	all := c.MetricsPrefixes
	problems := []error{
		refuse(len(all) > maxPrefixes, fmt.Sprintf("has %d prefixes, too many", len(all))),
		refuse(len(all) > 0 && c.AdminListen == "", "has no effect: metrics are served at admin-listen alone", "give --admin-listen, or leave the prefixes out"),
	}
	for i, prefix := range all {
		problems = append(problems, about(strconv.Quote(prefix), cmp.Or(
			refuse(prefix == "", "is empty", "leave it out: keys without a prefix are counted as other"),
			refuse(prefix == "other", "is the label of keys without a prefix", "choose a longer beginning of the keys, such as other:"),
			refuse(len(prefix) > maxPrefix, fmt.Sprintf("has %d bytes, at most %d are allowed", len(prefix), maxPrefix)),
			refuse(hasBlank(prefix) || !utf8.ValidString(prefix), "holds a blank, a control character or a byte that is not UTF-8"),
			refuse(strings.HasSuffix(prefix, "*"), "ends with *, which stands for itself here", "leave the * out: every prefix matches all keys that begin with it"),
			refuse(slices.Contains(all[:i], prefix), "is given twice", "leave one out"))))
	}
	return errors.Join(problems...)
}

// checkFollowTo requires a port, and a name that is not all text: with "*" whoever writes on the masters gets their password.
func checkFollowTo(c *Config) error {
	var problems []error
	for _, one := range c.FollowTo {
		host, port, err := net.SplitHostPort(one)
		problems = append(problems, about(strconv.Quote(one), cmp.Or(
			refuse(err != nil || host == "" || port == "", "is no address with a port"),
			refuse(strings.Trim(host, "*.") == "", "allows every host", "name the network or the domain of the masters: 10.0.0.*:6379, *.redis.internal:6379"),
			refuse(strings.ContainsAny(one, `?\/`) || hasBlank(one), "holds a character that no address has"))))
	}
	return errors.Join(problems...)
}

// parseMode reads octal text: TOML would read 700 as a decimal number.
func parseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 16)
	return fs.FileMode(mode), refuse(err != nil, "is not an octal number")
}

func showMode(mode fs.FileMode) string { return fmt.Sprintf("%04o", uint32(mode)) }

func checkMode(c *Config) error {
	return refuse(c.UnixMode&^0o777 != 0, "has other bits than those of permissions")
}

const (
	maxPassword  = 512 // the longest that a client can send before it is authenticated
	maxKeyPrefix = 64  // leaves space: a key may have 512 bytes of its own
)

func checkPassword(c *Config) error { return refuse(len(c.RequirePass) > maxPassword, "is too long") }

func checkTLSCert(c *Config) error {
	used := slices.ContainsFunc(append([]string{c.AdminListen}, c.Listen...), func(address string) bool { return strings.HasPrefix(address, tlsPrefix) })
	return cmp.Or(
		refuse(c.TLSCert == "" && used, "is missing, and an address of listen or admin-listen begins with tls:", "give --tls-cert and --tls-key"),
		refuse(c.TLSCert != "" && !used, "has no effect: no address of listen begins with tls:, nor does admin-listen", "write tls:host:port in --listen"))
}

func checkTLSKey(c *Config) error {
	return refuse((c.TLSKey == "") != (c.TLSCert == ""), "and tls-cert belong together", "give both")
}

func checkTLSCA(c *Config) error {
	off := c.TLSClientAuth == ClientAuthOff
	return cmp.Or(
		refuse(c.TLSCA == "" && !off && c.TLSClientAuth != "", "is missing, and tls-client-auth requests certificates", "give the CA that signs them"),
		refuse(c.TLSCA != "" && off, "has no effect while tls-client-auth is off", "set tls-client-auth to optional or required"))
}

func checkKeyPrefix(c *Config) error {
	listed := len(c.KeyPrefixes) == 0 || slices.Contains(c.KeyPrefixes, c.KeyPrefix)
	if err := checkPrefix(c.KeyPrefix); err != nil || listed {
		return err
	}
	return refuse(true, "is none of key-prefixes", fmt.Sprintf("the nearest one is %q", Nearest(c.KeyPrefix, c.KeyPrefixes)))
}

// ownKeys begins the names of the keys that a group without a key prefix has, and of the one that
// all groups share.
const ownKeys = "redlockd:"

func checkPrefix(prefix string) error {
	return cmp.Or(refuse(len(prefix) > maxKeyPrefix, fmt.Sprintf("has %d bytes, too many", len(prefix))),
		refuse(hasBlank(prefix), "holds a blank or a control character"),
		refuse(prefix != "" && (strings.HasPrefix(prefix, ownKeys) || strings.HasPrefix(ownKeys, prefix)),
			fmt.Sprintf("has %q: a lock would get the name of a key of redlockd's own, which begin with %s", prefix, ownKeys)))
}

// checkKeyPrefixes: a key of one prefix must not be one of another prefix, too. The empty one comes
// first: a group that began without a prefix keeps its own keys there.
func checkKeyPrefixes(c *Config) error {
	if len(c.KeyPrefixes) > maxPrefixes {
		return refuse(true, fmt.Sprintf("has %d key prefixes", len(c.KeyPrefixes)))
	}
	for i, prefix := range c.KeyPrefixes {
		if err := checkPrefix(prefix); err != nil {
			return err
		}
		for j, other := range c.KeyPrefixes {
			if i != j && strings.HasPrefix(prefix, other) && (other != "" || j > 0 || prefix == "") {
				return cmp.Or(refuse(prefix == other, fmt.Sprintf("has %q twice", prefix)), refuse(true, fmt.Sprintf("has %q, which begins with %q", prefix, other)))
			}
		}
	}
	return nil
}

func checkCompatTest(c *Config) error {
	open := slices.IndexFunc(c.Listen, Reachable)
	if c.CompatTest && len(c.Groups) > 1 {
		return refuse(true, "is for one group of masters, and the file has several", "leave the [[group]] tables out")
	}
	if !c.CompatTest || open < 0 {
		return nil
	}
	return refuse(true, "is refused while listen has "+strconv.Quote(c.Listen[open])+": any client may overwrite any lock and empty the masters",
		"listen on 127.0.0.1, [::1] or a unix socket, and never use it in production")
}

func checkOTLP(c *Config) error {
	u, err := url.Parse(c.OTLPEndpoint)
	if c.OTLPEndpoint == "" || err != nil {
		return refuse(err != nil, "is not a URL")
	}
	return cmp.Or(
		refuse(u.User != nil, "has a user or a password, which would be shown to all users", "configure it in a collector on this machine"),
		refuse(u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "", "is not a URL of that form"))
}
