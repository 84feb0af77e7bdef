package configs

// checks.go contains the checks of options beyond their range, and the warnings about settings
// that are valid but unwise.

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate returns all problems as joined FieldErrors, or nil.
func (c *Config) Validate() error { return errors.Join(check(c, options(c), nil)...) }

// check runs the checks of all options.
func check(c *Config, options []option, found map[string]given) (problems []error) {
	for _, o := range options {
		shown := o.show()
		if shown == "" || hasBlank(shown) {
			shown = strconv.Quote(shown)
		}
		problems = append(problems, o.explain(o.check(c), shown, found[o.name])...)
	}
	return append(problems, checkGroups(c)...)
}

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

func checkEmbedded(c *Config) error {
	if len(c.allMasters()) > 0 {
		return refuse(c.Embedded != 0, "cannot be combined with masters")
	}
	return checkMajority(c.Embedded)
}

func checkKeyPrefix(c *Config) error {
	listed := len(c.KeyPrefixes) == 0 || slices.Contains(c.KeyPrefixes, c.KeyPrefix)
	if err := checkPrefix(c.KeyPrefix); err != nil || listed {
		return err
	}
	return refuse(true, "is none of key-prefixes", fmt.Sprintf("the nearest one is %q", nearest(c.KeyPrefix, c.KeyPrefixes)))
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
	// wordPattern matches valid names of groups and masters: they become parts of the
	// identity stored on the masters, whose parts are separated by blanks and commas.
	wordPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

const wordAllowed = "1 to 64 of A-Z a-z 0-9 _ . -"

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

const (
	worldReadable = 0o004 // the permission bit that lets every user of the machine read
	worldBits     = 0o007 // all that every user of the machine is allowed
)

func (l *loader) warn() {
	c := &l.config
	warn := func(unwise bool, format string, args ...any) {
		if unwise {
			c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
		}
	}
	masters, password := l.found["masters"].source, l.found["requirepass"].source
	secret := slices.ContainsFunc(c.allMasters(), func(m Master) bool { return m.Password != "" })
	socket := slices.ContainsFunc(c.Listen, func(address string) bool { return strings.HasPrefix(address, "unix:") })
	warn(secret && masters == "--masters", "--masters holds a password, which every user of this machine can read in the list of processes: use --masters-file, or REDLOCKD_MASTERS")
	warn(secret && (masters == c.File || len(c.Groups) > 0) && readableByAll(c.File), "%[1]s holds a password and every user of this machine can read it: chmod o-r %[1]s", c.File)
	warn(secret && readableByAll(c.MastersFile), "%[1]s holds a password and every user of this machine can read it: chmod 600 %[1]s", c.MastersFile)
	warn(socket && c.UnixMode&worldBits != 0, "unix-mode = %04o: every user of this machine can connect to the socket; use 0770 and a group", uint32(c.UnixMode))
	warn(c.CompatTest, "compat-test = true: any client may overwrite any lock and empty the masters, and locks need no expiry: never in production")
	warn(password == "--requirepass", "--requirepass is a password, which every user of this machine can read in the list of processes: use REDLOCKD_REQUIREPASS or a file")
	warn(password == c.File && readableByAll(c.File), "%[1]s holds requirepass and every user of this machine can read it: chmod o-r %[1]s", c.File)
	warn(readableByAll(c.UsersFile), "%[1]s holds digests of passwords and every user of this machine can read it: chmod o-r %[1]s", c.UsersFile)
	warn(c.ProtectedMode == "off" && c.RequirePass == "" && len(c.Users) == 0, "protected-mode = off without requirepass and users: every client that reaches this port may do everything")
	warn(c.RestartGuard == GuardOff, "restart-guard = off: after a master restarts without its memory, two clients may hold one lock")
	warn(c.IDsDurability == IDsVolatile, "ids-durability = off: after a crash of masters, ids may be given a second time")
	if c.Bootstrap { // with its source, so that the operator can remove it
		c.BootstrapWarning = fmt.Sprintf("bootstrap = true (from %s) stays in force: should all masters lose their memory at once, locks still held could be granted again; take it out and use `redlockd bootstrap` once instead", l.found["bootstrap"].source)
		c.Warnings = append(c.Warnings, c.BootstrapWarning)
	}
}

func readableByAll(path string) bool {
	info, err := os.Stat(path) // fails for "", the path of no file
	return err == nil && info.Mode().Perm()&worldReadable != 0
}
