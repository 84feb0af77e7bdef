package configs

// address.go parses and checks addresses. One entry of --masters is:
//
//	[name=]host[:port]
//	[name=]redis://[user:password@]host[:port]
//	[name=]rediss://[user:password@]host[:port][?ca=…&cert=…&key=…&server-name=…]
//	[name=]unix:/path
//	[name=]unix://[user:password@]/path
//
// A path, a host and a port are checked alike wherever an option has one.
//
// The errors here are ends of sentences and repeat nothing of the entry, since
// a mistake in a password can move any part of it to any other place; net/url's
// own errors do repeat it and are therefore not wrapped.

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const defaultPort = "6379" // of Redis

var errEscape = errors.New("is not a URL: in user and password write % as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and a comma as %2C")

func parsePlace(place string) (Master, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	switch {
	case place == "":
		return Master{}, errors.New("is empty")
	case isURL && slices.Contains([]string{"unix", "redis", "rediss"}, scheme):
		return parseURL(place)
	case strings.HasPrefix(place, "unix:"): // before other schemes: a path may hold ://
		return Master{Network: "unix", Address: strings.TrimPrefix(place, "unix:")}, nil
	case isURL:
		return Master{}, errors.New("has an unknown scheme")
	case strings.HasPrefix(place, "/"):
		return Master{}, errors.New("is a path: write unix: before it")
	case strings.ContainsAny(place, "/?"):
		return Master{}, errors.New("is neither host:port nor a URL with redis://, rediss:// or unix: before it")
	}
	return tcpMaster(place)
}

// tcpMaster reads host, host:port, [ipv6] and [ipv6]:port.
func tcpMaster(place string) (Master, error) {
	if ip, err := netip.ParseAddr(place); err == nil && ip.Is6() {
		return Master{}, errors.New("is an IPv6 address without brackets: write [address]:port")
	}
	host, port, err := net.SplitHostPort(place)
	if err != nil {
		host, port, err = net.SplitHostPort(place + ":" + defaultPort)
	}
	return Master{Network: "tcp", Address: net.JoinHostPort(host, port)}, refuse(err != nil, "is not host:port")
}

func parseURL(place string) (Master, error) {
	u, err := url.Parse(place)
	if err != nil || strings.Contains(place, "#") {
		return Master{}, errEscape
	}
	if u.Scheme == "unix" {
		master := Master{Network: "unix", Address: u.Path}
		return master, cmp.Or(refuse(u.Host != "", "has a host before its path: write unix:///path or unix://user:password@/path"),
			refuse(u.RawQuery != "", "has a query, which a socket does not take"), master.login(u))
	}
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		port = defaultPort
	}
	master := Master{Network: "tcp", Address: net.JoinHostPort(u.Hostname(), port)}
	master.TLS, err = parseTLS(u)
	if strings.Contains(u.Path+u.RawQuery, "@") { // a slash or question mark in the password
		return Master{}, errEscape
	}
	return master, cmp.Or(refuse(u.Path != "" && u.Path != "/" || u.Query().Has("db"),
		"names a database; databases are chosen by SELECT alone, leave it out"), master.login(u), err)
}

// login takes the user and the password of a URL.
func (m *Master) login(u *url.URL) error {
	m.Username = u.User.Username()
	password, _ := u.User.Password()
	m.Password = Secret(password)
	return refuse(u.User != nil && m.Password == "", "has an incomplete login: write user:password@, or :password@ for a password alone")
}

// parseTLS reads the query of rediss://. There is no way to skip the check of
// the certificate: an attacker in between could then grant any lock.
func parseTLS(u *url.URL) (*TLS, error) {
	query, err := url.ParseQuery(u.RawQuery)
	switch {
	case err != nil:
		return nil, errors.New("has a query that cannot be read")
	case u.Scheme == "redis":
		return nil, refuse(len(query) > 0 || u.ForceQuery, "has a query, which only rediss:// takes")
	}
	for key, values := range query {
		known := slices.Contains([]string{"ca", "cert", "key", "server-name"}, key)
		err = cmp.Or(err, refuse(!known, "has a query with a parameter other than ca, cert, key and server-name"),
			refuse(len(values) > 1 || values[0] == "", "has the parameter "+key+" twice or empty"))
	}
	return &TLS{CAFile: query.Get("ca"), CertFile: query.Get("cert"), KeyFile: query.Get("key"), ServerName: cmp.Or(query.Get("server-name"), u.Hostname())},
		cmp.Or(err, refuse(query.Has("cert") != query.Has("key"), "has only one of cert and key, which belong together"))
}

const (
	// maxSocketPath is the longest that every supported system can store in a socket's
	// address (108 bytes with the closing zero on Linux, 104 on BSD and macOS).
	maxSocketPath = 103
	maxHost       = 253 // of a host name, RFC 1035
)

func checkSocketPath(path string) error {
	return cmp.Or(
		refuse(!strings.HasPrefix(path, "/"), "is not an absolute path"),
		refuse(strings.HasPrefix(path, "//"), "begins with two slashes"),
		refuse(strings.HasSuffix(path, "/"), "is a directory and not a socket"),
		refuse(len(path) > maxSocketPath, fmt.Sprintf("has %d bytes, a socket's path has at most %d", len(path), maxSocketPath)),
		refuse(hasBlank(path) || strings.Contains(path, ","), "holds a blank, a comma or a control character"))
}

// checkPort accepts min to 65535 in plain digits.
func checkPort(port string, min int) error {
	n, err := strconv.ParseUint(port, 10, 16)
	return refuse(err != nil || int(n) < min, fmt.Sprintf("has a port that is not a number from %d to 65535", min))
}

var (
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)
	numberPattern = regexp.MustCompile(`^[0-9.]+$`)
)

func checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		return refuse(ip.Zone() != "" && !wordPattern.MatchString(ip.Zone()), "has an IPv6 zone that is not "+wordAllowed)
	}
	return cmp.Or(
		refuse(host == "", "has no host"),
		refuse(numberPattern.MatchString(host), "has a host of digits that is no IP address"),
		refuse(len(host) > maxHost || !hostPattern.MatchString(host),
			"has a host that is neither a name nor an IP address (others than ASCII in punycode, IPv6 in brackets)"))
}

// hasBlank reports whether text holds a space or a control character, which is invisible
// in a log or an error.
func hasBlank(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
