package configs

// masters.go contains Master and the list of them: it is split,
// every entry parsed (see address.go) and the whole checked.

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"redlockd/proxy/tlsconf"
)

// String is "name=address", or the address alone where it is the name.
func (m Master) String() string {
	address := m.Address
	if m.Network == "unix" {
		address = "unix:" + address
	}
	if m.Name != address && m.Name != "" {
		return m.Name + "=" + address
	}
	return address
}

// Query returns the options of its rediss:// URL.
func (m Master) Query() string {
	query := url.Values{}
	for name, value := range map[string]string{"ca": m.TLS.CAFile, "cert": m.TLS.CertFile, "key": m.TLS.KeyFile, "server-name": m.TLS.ServerName} {
		if host, _, _ := net.SplitHostPort(m.Address); value != "" && (name != "server-name" || value != host) {
			query.Set(name, value)
		}
	}
	return strings.ReplaceAll(query.Encode(), "%2F", "/")
}

// Load reads the files and returns what a connection needs. The error names
// the file that could not be used.
func (t TLS) Load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		var err error
		if config.RootCAs, err = tlsconf.ReadAuthorities(t.CAFile); err != nil {
			return nil, fmt.Errorf("ca: %w; name a readable PEM file", err)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tlsconf.ReadPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cert %s with key %s cannot be used", t.CertFile, t.KeyFile), err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func masterList(c *Config) value {
	v := list(nil, "LIST", ",", "3 to 9 of [name=]host:port, redis[s]://user:password@host:port, unix:/path", nil)
	v.set = func(list string) error { return c.setMasters(strings.Split(list, ","), "") }
	v.show = func() string { return showMasters(c) }
	return v.hidden().checked(checkMasters)
}

func showMasters(c *Config) string {
	var names []string
	for _, master := range c.allMasters() {
		names = append(names, master.String())
	}
	return strings.Join(names, ",")
}

// mastersFile keeps URLs with passwords out of the list of processes and of the
// configuration file.
func mastersFile(c *Config) value {
	v := text(&c.MastersFile, "FILE", "path of a text file with one master a line, of at most 1 MiB")
	v.set = func(path string) error {
		if len(c.Masters) > 0 {
			return refuse(true, "cannot be combined with masters", "leave one out")
		}
		c.MastersFile = path
		content, err := readSmallFile(path)
		if err != nil {
			return fmt.Errorf("cannot be read: %w", err)
		}
		entries := slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool {
			line = strings.TrimSpace(line)
			return line == "" || line[0] == '#'
		})
		return cmp.Or(refuse(len(entries) == 0, "names no master"), c.setMasters(entries, strconv.Quote(path)+" "))
	}
	return v
}

// ParseMasters reads entries as those of the option masters, of any number.
func ParseMasters(entries []string) ([]Master, error) {
	var c Config
	o := option{name: "masters", advice: "write for example d=10.0.0.4:6379",
		value: value{secret: true, allowed: "[name=]host:port, redis[s]://user:password@host:port, unix:/path"}}
	return c.Masters, errors.Join(o.explain(c.setMasters(entries, ""), "", given{})...)
}

// setMasters sets the masters, one for each entry. It never shows an entry as it was given:
// any part of it may belong to a password with an unescaped comma, slash or at-sign.
func (c *Config) setMasters(entries []string, file string) error {
	if hasLooseLogin(entries) {
		return refuse(true, "has a login without a scheme before it", "write redis:// before user:password@, and a comma in a password as %2C")
	}
	masters, problems := make([]Master, len(entries)), make([]error, len(entries))
	for i, entry := range entries {
		master, err := parseMaster(strings.TrimSpace(entry))
		masters[i], problems[i] = master, about(fmt.Sprintf("%sentry %d %q", file, i+1, redactEntry(entry)), err)
	}
	err := errors.Join(problems...)
	if err == nil {
		c.Masters = masters
	}
	return err
}

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

// hasLooseLogin finds an entry with the end of a login and no beginning: the
// user omitted redis://, or a comma has split redis://user:pa,ss@host. This check
// comes first, so that no part of the list is shown.
func hasLooseLogin(entries []string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		_, place, _ := cutName(strings.TrimSpace(entry))
		return strings.Contains(place, "@") && !strings.Contains(place, "://") && !strings.HasPrefix(place, "unix:/")
	})
}

func checkMasters(c *Config) error {
	if len(c.Masters) == 0 {
		return nil // embedded masters are used then, whose number is checked
	}
	problems := []error{checkNumber(len(c.Masters))} // an even one is a step of a change
	names, addresses := make(map[string]bool), make(map[string]bool)
	for _, m := range c.Masters {
		address := canonicalAddress(m)
		problems = append(problems, about(m.String(), checkMaster(m)),
			about(m.String(), refuse(names[m.Name], "has a name that another one has", "give each master a name of its own")),
			about(m.String(), refuse(addresses[address], "has the address of another one", "a server has one vote: list each once")))
		names[m.Name], addresses[address] = true, true
	}
	return errors.Join(problems...)
}

// checkNumber rejects a number of masters that no majority should be built of, and gives
// the reason.
func checkNumber(n int) error {
	text := fmt.Sprintf("%d masters", n)
	if n == 1 {
		text = "1 master"
	}
	return about(text, cmp.Or(
		refuse(n > 9, "are more than a quorum should wait for", "use 9 at most; for more load, run more groups"),
		refuse(n < 3, "cannot lose one and still have a majority", "use 3, or 5 to lose two")))
}

// checkMajority rejects an even number, too.
func checkMajority(n int) error {
	return cmp.Or(checkNumber(n), about(fmt.Sprintf("%d masters", n),
		refuse(n%2 == 0, fmt.Sprintf("survive the loss of %d, as %d do, and need one answer more for every decision: the number must be odd", (n-1)/2, n-1),
			fmt.Sprintf("use %d or %d", n-1, n+1))))
}

func checkEmbedded(c *Config) error {
	if len(c.allMasters()) > 0 {
		return refuse(c.Embedded != 0, "cannot be combined with masters")
	}
	return checkMajority(c.Embedded)
}

// maxName holds every default name: a host of maxHost bytes and its port.
const maxName = 264

// checkMaster also checks a Master that was built by hand.
func checkMaster(m Master) error {
	err := checkSocketPath(m.Address)
	if m.Network != "unix" {
		host, port, wrong := net.SplitHostPort(m.Address)
		err = cmp.Or(refuse(m.Network != "tcp", `has a network that is neither "tcp" nor "unix"`),
			refuse(wrong != nil, "has an address that is not host:port"), checkPort(port, 1), checkHost(host))
	}
	unfit := m.Name == "" || len(m.Name) > maxName || hasBlank(m.Name) || strings.Contains(m.Name, ",")
	return cmp.Or(err, refuse(unfit, "has a name that is empty, too long, or holds a blank or a comma"))
}

// canonicalAddress returns the same text for two spellings of one address. It cannot detect
// two names of one server: those are found when the servers answer.
func canonicalAddress(m Master) string {
	if m.Network == "unix" {
		return filepath.Clean(m.Address)
	}
	host, port, _ := net.SplitHostPort(m.Address)
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), strings.TrimLeft(port, "0"))
}
