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
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const defaultPort = "6379" // of Redis

var (
	errDatabase = errors.New("names a database; databases are chosen by SELECT alone, leave it out")
	errEscape   = errors.New("is not a URL: in user and password write % as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and a comma as %2C")
	errLogin    = errors.New("has an incomplete login: write user:password@, or :password@ for a password alone")
)

func parseMaster(entry string) (Master, error) {
	name, place := cutName(entry)
	if name != nil && !wordPattern.MatchString(*name) {
		return Master{}, errors.New("has a name that is not " + wordAllowed)
	}
	master, err := parsePlace(place)
	if err != nil {
		return Master{}, err
	}
	switch {
	case name != nil:
		master.Name = *name
	case master.Network == "unix":
		master.Name = "unix:" + master.Address
	default:
		master.Name = master.Address
	}
	return master, nil
}

// cutName splits "name=place"; an equals sign behind a colon, slash or at-sign
// belongs to a query, a path or a password.
func cutName(entry string) (name *string, place string) {
	i := strings.IndexAny(entry, "=:/@")
	if i < 0 || entry[i] != '=' {
		return nil, entry
	}
	before := entry[:i]
	return &before, entry[i+1:]
}

func parsePlace(place string) (Master, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	switch {
	case place == "":
		return Master{}, errors.New("is empty")
	case isURL && scheme == "unix":
		return parseSocketURL(place)
	case strings.HasPrefix(place, "unix:"): // before other schemes: a path may hold ://
		return socketMaster(strings.TrimPrefix(place, "unix:"))
	case isURL && (scheme == "redis" || scheme == "rediss"):
		return parseRedisURL(place)
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
		if host, port, err = net.SplitHostPort(place + ":" + defaultPort); err != nil {
			return Master{}, errors.New("is not host:port")
		}
	}
	return hostMaster(host, port)
}

func hostMaster(host, port string) (Master, error) {
	if text := portProblem(port, 1); text != "" {
		return Master{}, errors.New(text)
	}
	if text := hostProblem(host); text != "" {
		return Master{}, errors.New(text)
	}
	return Master{Network: "tcp", Address: net.JoinHostPort(host, port)}, nil
}

func socketMaster(path string) (Master, error) {
	if text := socketPathProblem(path); text != "" {
		return Master{}, errors.New(text)
	}
	return Master{Network: "unix", Address: path}, nil
}

func parseRedisURL(place string) (Master, error) {
	u, err := url.Parse(place)
	if err != nil || strings.Contains(place, "#") || strings.Contains(u.Path, "@") || strings.Contains(u.RawQuery, "@") {
		return Master{}, errEscape // the last two: a slash or question mark in the password
	}
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		port = defaultPort
	}
	master, err := hostMaster(u.Hostname(), port)
	if err != nil {
		return Master{}, err
	}
	if u.Path != "" && u.Path != "/" || u.Query().Has("db") {
		return Master{}, errDatabase
	}
	if master.Username, master.Password, err = login(u); err != nil {
		return Master{}, err
	}
	if master.TLS, err = parseTLS(u); err != nil {
		return Master{}, err
	}
	return master, nil
}

func parseSocketURL(place string) (Master, error) {
	u, err := url.Parse(place)
	if err != nil || strings.Contains(place, "#") {
		return Master{}, errEscape
	}
	if u.Host != "" {
		return Master{}, errors.New("has a host before its path: write unix:///path or unix://user:password@/path")
	}
	if u.RawQuery != "" {
		return Master{}, errors.New("has a query, which a socket does not take")
	}
	master, err := socketMaster(u.Path)
	if err != nil {
		return Master{}, err
	}
	if master.Username, master.Password, err = login(u); err != nil {
		return Master{}, err
	}
	return master, nil
}

func login(u *url.URL) (username, password string, err error) {
	if u.User == nil {
		return "", "", nil
	}
	password, _ = u.User.Password()
	if password == "" {
		return "", "", errLogin
	}
	return u.User.Username(), password, nil
}

// parseTLS reads the query of rediss://. There is no way to skip the check of
// the certificate: an attacker in between could then grant any lock.
func parseTLS(u *url.URL) (*TLS, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("has a query that cannot be read")
	}
	if u.Scheme == "redis" {
		if len(query) > 0 || u.ForceQuery {
			return nil, errors.New("has a query, which only rediss:// takes")
		}
		return nil, nil
	}
	for key, values := range query {
		if !slices.Contains([]string{"ca", "cert", "key", "server-name"}, key) {
			return nil, errors.New("has a query with a parameter other than ca, cert, key and server-name")
		}
		if len(values) > 1 || values[0] == "" {
			return nil, errors.New("has the parameter " + key + " twice or empty")
		}
	}
	if query.Has("cert") != query.Has("key") {
		return nil, errors.New("has only one of cert and key, which belong together")
	}
	config := &TLS{CAFile: query.Get("ca"), CertFile: query.Get("cert"), KeyFile: query.Get("key"), ServerName: query.Get("server-name")}
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	return config, nil
}
