package configs

// config.go contains Config, all settings of redlockd: checked values, in types that carry
// their units. redlockd.toml describes every option, and options.go has
// their defaults and ranges.
//
// The name of an option is the same everywhere: --max-ttl on the command line,
// REDLOCKD_MAX_TTL in the environment, max-ttl in the file, MaxTTL in Config.

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"redlockd/redlock/slots"
)

// Words of options that other code compares.
const (
	ClientAuthOff = "off" // of TLSClientAuth: no certificate is requested from clients
	GuardOff      = "off" // of RestartGuard: exclusion is not guaranteed after a master's restart
	IDsVolatile   = "off" // of IDsDurability: any master will do; a crash may repeat ids
)

// Config contains all settings. Get one from Load or Default; call Validate for one that
// was built by hand.
type Config struct {
	Listen                                        []string // port 0 picks a free one
	UnixMode                                      fs.FileMode
	ClusterAnnounce                               string // "" = no node of a cluster
	MaxClients, MaxClientsPerAddress, MaxConnects int
	UnauthenticatedMemory, MaxMemoryClients       int // bytes of all clients together
	ClientOutputLimit                             int // bytes
	MaxSubscriptions                              int
	ClientTimeout, DrainGrace, DrainTimeout       time.Duration

	RequirePass            Secret
	UsersFile              string // of Users; read again at SIGHUP, by ReadUsers
	Users                  []User
	ProtectedMode          string
	TLSCert, TLSKey, TLSCA string // paths of PEM files, read again at SIGHUP
	TLSClientAuth          string

	Masters                  []Master // none = embedded ones
	MastersFile              string   // where Masters were read from, "" if they were given
	Embedded                 int      // 0 if and only if Masters are given
	Group, KeyPrefix         string   // with Groups, Group is "", or the one that a subcommand is for
	KeyPrefixes              []string // of all daemons of the group; none = those that it has
	FollowTo                 []string // addresses at which a daemon may log in when a change of the group names them
	Groups                   []Group  // of [[group]] tables, in place of Masters; none = one group with all slots
	Slots                    string   // of a Config that Each returns; "" = all
	Databases                int
	MasterTimeout            time.Duration
	RestartGuard             string
	AssumeDurable, Bootstrap bool

	MaxTTL, MaxKeep, MaxWait                    time.Duration
	MaxHold                                     time.Duration // 0 = none
	MaxOperations, MaxWaiters, MaxWaitersPerKey int
	LongTTL, NoTTL                              string
	ScriptClasses                               []string // "<sha1>=<class>…" each
	IDsDurability                               string
	LockInfo                                    bool
	FairKeys                                    string // pattern; "" = none

	AdminListen         string
	MetricsPrefixes     []string // of keys, each a label of metrics
	Pprof, CompatTest   bool
	OTLPEndpoint        string
	OTLPSample          float64 // 0.01 at 20 000 operations a second is 200 spans, 300 kB a second
	LogLevel, LogFormat string
	File                string // the path of the file that was read, "" for none

	// Warnings are sentences for the log about settings that are valid but unwise. Load
	// fills them; they never hold a password. The daemon repeats BootstrapWarning while it
	// serves, and shows it to its operators; it is "" unless Bootstrap is set.
	Warnings         []string
	BootstrapWarning string
}

// Master is one Redis server that votes.
type Master struct {
	Name     string // the same in all daemons; by default the address with its port
	Network  string // "tcp" or "unix"
	Address  string // "host:port", or the path of the socket
	Username string // "" = the default user
	Password Secret // "" = none
	TLS      *TLS   // nil = a plain connection
}

// TLS configures the certificates of a rediss:// master and of this daemon.
type TLS struct {
	CAFile     string // PEM; "" = the authorities this machine trusts
	CertFile   string // PEM of this daemon's certificate, together with KeyFile
	KeyFile    string // PEM
	ServerName string // the name its certificate must carry; "" = the host
}

// Group is one of several groups of masters.
type Group struct {
	Name       string
	Masters    []Master
	Slots      slots.Ranges
	groupTable // where it is in the file
}

// groupTable is a [[group]] table of a file; the zero value is one of no file.
type groupTable struct {
	path  string
	lines map[string]int // see keyLines
	head  string         // of the table's keys there
}

func (t *groupTable) line(key string) int {
	return cmp.Or(t.lines[t.head+key], t.lines[t.head], t.lines["group"])
}

// User is one table of the users file.
type User struct {
	Name                              string
	Passwords                         [][sha256.Size]byte // SHA-256 of each
	Argon2id                          []string            // further ones, in the text form of Argon2
	Keys, Commands, Denied            []string
	Held, Rate, Counters, Connections int
	MaxHold                           time.Duration
	Disabled                          bool
}

// Each returns the settings of each group of masters: these, or with [[group]] tables one for
// each of them, or for the one that the option group names.
func (c Config) Each() (all []Config) {
	if len(c.Groups) == 0 {
		return []Config{c}
	}
	for _, g := range c.Groups {
		if c.Group != "" && c.Group != g.Name {
			continue
		}
		one := c
		one.Groups, one.Group, one.Masters = nil, g.Name, g.Masters
		if one.Slots = g.Slots.String(); g.Slots.Len() == slots.Count {
			one.Slots = "" // as a group that is the only one
		}
		all = append(all, one)
	}
	return all
}

func (c *Config) allMasters() []Master {
	all := slices.Clone(c.Masters)
	for _, g := range c.Groups {
		all = append(all, g.Masters...)
	}
	return all
}

// Secret is a password. However it is printed, logged or marshalled, the output only shows
// whether there is one.
type Secret string

// String is "***", or "" where there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// Format prints String for every verb.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalText returns String, for encoding/json and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
