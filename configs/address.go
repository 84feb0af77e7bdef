package configs

// address.go parses one entry of --masters:
//
//	[name=]host[:port]
//	[name=]redis://[user:password@]host[:port]
//	[name=]rediss://[user:password@]host[:port][?ca=…&cert=…&key=…&server-name=…]
//	[name=]unix:/path
//	[name=]unix://[user:password@]/path
//
// The errors here are ends of sentences and repeat nothing of the entry, since
// a mistake in a password can move any part of it to any other place; net/url's
// own errors do repeat it and are therefore not wrapped.

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const defaultPort = "6379" // of Redis

var errEscape = errors.New("is not a URL: in user and password write % as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and a comma as %2C")

func parseMaster(entry string) (Master, error) {
	name, place, named := cutName(entry)
	master, err := parsePlace(place)
	master.Name = cmp.Or(name, master.String())
	err = cmp.Or(refuse(named && !wordPattern.MatchString(name), "has a name that is not "+wordAllowed), err, checkMaster(master))
	return master, err
}

// cutName splits "name=place"; an equals sign behind a colon, slash or at-sign
// belongs to a query, a path or a password.
func cutName(entry string) (name, place string, named bool) {
	if i := strings.IndexAny(entry, "=:/@"); i >= 0 && entry[i] == '=' {
		return entry[:i], entry[i+1:], true
	}
	return "", entry, false
}

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
