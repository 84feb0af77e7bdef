package configs

// config.go contains Config, all settings of redlockd with their defaults: checked values,
// in types that carry their units.
//
// The name of an option is the same everywhere: --max-ttl on the command line,
// REDLOCKD_MAX_TTL in the environment, max-ttl in the file. Flags win over the
// environment, which wins over the file, which wins over Default.

import (
	"io/fs"
	"time"
)

// Values of --restart-guard.
const (
	GuardStrict = "strict" // a master that may have lost locks waits before it votes
	GuardOff    = "off"    // it votes at once; exclusion is not guaranteed after its restart
)

// Values of --ids-durability.
const (
	IDsDurable  = "on"  // ids need masters that survive a crash
	IDsVolatile = "off" // any master will do; a crash may repeat ids
)

// Values of --long-ttl and --no-ttl.
const (
	TTLDeny  = "deny"  // the command is rejected
	TTLClamp = "clamp" // LongTTL: MaxTTL instead
	TTLLease = "lease" // NoTTL: MaxTTL instead
	TTLAllow = "allow" // NoTTL: no expiry
)

// Config contains all settings. Get one from Load or Default; call Validate for one that
// was built by hand.
type Config struct {
	// Listen is where clients connect: "host:port", ":port" (all interfaces),
	// "tls:host:port" or "unix:/path"; port 0 picks a free one. Default
	// 127.0.0.1:7379.
	Listen []string
	// UnixMode is the permission of unix sockets. At most 0777, default 0700.
	UnixMode fs.FileMode
	// MaxClients is how many connections are served at once; further ones are
	// rejected with an error. Unauthenticated clients may be half of them. 1 to 1000000,
	// default 10000.
	MaxClients int
	// MaxClientsPerAddress is how many connections one address may have, an IPv6
	// network of 64 bits counting as one. 0 (no limit) to 1000000, default 1000.
	MaxClientsPerAddress int
	// MaxConnects is how many connections a second one address may open, counted
	// likewise, and five times as many at once after a rest; those beyond are
	// reset. 0 (no limit) to 1000000, default 200.
	MaxConnects int
	// UnauthenticatedMemory is how many bytes of incomplete commands all unauthenticated
	// clients may have sent together; 2 kB of each are not counted.
	// 262144 to 1073741824, default 4194304.
	UnauthenticatedMemory int
	// MaxMemoryClients is how many bytes of commands, replies, messages and
	// subscriptions all clients may have together, and one user half of that; 16 kB of
	// each are not counted. Beyond it the client with the most is closed. 1048576 to
	// 1073741824, default 134217728.
	MaxMemoryClients int
	// ClientOutputLimit is how many bytes of replies and messages one client may leave
	// unread before it is closed. 262144 to 1073741824, default 1048576.
	ClientOutputLimit int
	// MaxSubscriptions is how many channels and patterns one connection may subscribe
	// to; their names may have 64 bytes each on average. 1 to 1000000, default 1024.
	MaxSubscriptions int
	// MaxOperations is how many lock operations may be in flight at once;
	// further ones are answered TRYLATER. 1 to 10000000, default 100000.
	MaxOperations int
	// ClientTimeout ends the connection of a client that sends nothing for so long
	// while it has nothing in flight and no subscription: its locks with HOLD are
	// released. 0 (never) to 24h, default 0.
	ClientTimeout time.Duration
	// DrainTimeout is how long a stopping daemon waits for commands in flight.
	// 1ms to 10m, default 10s.
	DrainTimeout time.Duration

	// RequirePass is the password of the user default, which may do everything. At
	// most 512 bytes; default "": none is needed, unless there are Users.
	RequirePass Secret
	// UsersFile is the path of the file with Users, "" for none. It is read again
	// at SIGHUP, by ReadUsers.
	UsersFile string
	Users     []User
	// ProtectedMode is "on" or "off". Default "on": without RequirePass and Users
	// only clients of this machine are served.
	ProtectedMode string
	// TLSCert, TLSKey and TLSCA are paths of PEM files for addresses with tls: in
	// Listen, read again at SIGHUP. TLSCA signs the certificates of clients.
	TLSCert, TLSKey, TLSCA string
	// TLSClientAuth is ClientAuthOff (default), ClientAuthOptional or
	// ClientAuthRequired.
	TLSClientAuth string

	// Masters are the Redis servers whose majority decides: 3, 5, 7 or 9, or
	// none, which means embedded ones. All daemons of a group list the same.
	Masters []Master
	// MastersFile is the file that Masters were read from, "" if they were given.
	MastersFile string
	// Embedded is the number of masters inside this process, for trying out:
	// 3, 5, 7 or 9, and 0 if and only if Masters are given. Default 5.
	Embedded int
	// Group names the daemons and masters that belong together; a daemon of
	// another group is refused by the masters. 1 to 64 of A–Z a–z 0–9 _ . -,
	// default "default".
	Group string
	// Databases is how many databases SELECT offers, on masters and daemon
	// alike. 1 to 256, default 16.
	Databases int
	// KeyPrefix stands before every key on the masters, for masters that are
	// shared with other data. At most 64 bytes, default none.
	KeyPrefix string
	// MasterTimeout is the time after which an answer of a master is too late to
	// count; also the largest undetected step of its clock that is harmless.
	// 10ms to 5s, default 100ms.
	MasterTimeout time.Duration
	// RestartGuard is GuardStrict or GuardOff. Default GuardStrict: a master
	// that lost its memory votes only when it is older than MaxTTL.
	RestartGuard string
	// AssumeDurable is the operator's assurance that masters which refuse CONFIG GET
	// are durable: appendonly yes, appendfsync always. Default false.
	AssumeDurable bool
	// Bootstrap declares that a group in which no master has an identity is new and may
	// vote at once. Default false.
	Bootstrap bool

	// MaxTTL is the longest lease a client may request, and so the time a
	// restarted master stays without a vote. The same in all daemons of a
	// group. 10ms to 24h, default 60s.
	MaxTTL time.Duration
	// MaxKeep is the longest time that the outcome of finished work is
	// remembered. The same in all daemons of a group. 10ms to 24h, default 10m.
	MaxKeep time.Duration
	// MaxWait is the longest time a client may wait (WAIT). 10ms to 24h,
	// default 10m.
	MaxWait time.Duration
	// MaxWaiters is how many requests may wait at once, MaxWaitersPerKey how many
	// for one key; further ones are answered TRYLATER. 1 to 10000000, default
	// 100000 and 10000.
	MaxWaiters, MaxWaitersPerKey int
	// LongTTL is TTLDeny or TTLClamp: the effect of SET, EVAL and similar commands that
	// request more than MaxTTL. Default TTLDeny.
	LongTTL string
	// NoTTL is TTLDeny, TTLLease or TTLAllow: the effect of those that request no
	// expiry. Default TTLDeny.
	NoTTL string
	// LockInfo stores on the masters, for every lock, through which daemon and for
	// which client it was acquired, not only for those with META. It costs one more
	// short command per grant and one per release. Default false.
	LockInfo bool
	// ScriptClasses define what unrecognised scripts of lock libraries do:
	// "<sha1>=<class>…" each. Default none.
	ScriptClasses []string
	// CompatTest serves test suites of lock libraries: FLUSHDB, plain SET, locks
	// without an expiry and more go to all masters. Valid only while Listen has
	// addresses of this machine alone. Default false.
	CompatTest bool
	// IDsDurability is IDsDurable or IDsVolatile. Default IDsDurable: DNEXTID
	// needs a majority of masters that have their acknowledged writes on disk.
	// Embedded masters are exempt.
	IDsDurability string

	// AdminListen is where metrics, health and profiles are served over HTTP:
	// "host:port", ":port" or "tls:host:port". Default "": nowhere.
	AdminListen string
	// Pprof adds /debug/pprof to what is served there. Default false.
	Pprof bool

	// OTLPEndpoint is the URL of an OpenTelemetry collector (OTLP over HTTP) that
	// receives spans of operations; default "": none. OTLPSample is the share of
	// operations that are traced without a request for it, 0 to 1; default 0.01:
	// at 20 000 operations a second 200 spans, 300 kB a second.
	OTLPEndpoint string
	OTLPSample   float64

	// LogLevel is the least severe level that is logged: "debug", "info",
	// "warn" or "error". Default "info".
	LogLevel string
	// LogFormat is "text" or "json". Default "text".
	LogFormat string

	// File is the path of the file that was read, "" for none.
	File string
	// Warnings are sentences for the log about settings that are valid but
	// unwise. Load fills them; they never hold a password.
	Warnings []string
	// BootstrapWarning is the one of them that the daemon repeats while it
	// serves, and shows to its operators; "" unless Bootstrap is set.
	BootstrapWarning string
}

// Default returns the default settings: five embedded masters behind a port that only
// this machine reaches.
func Default() Config {
	return Config{
		Listen:                []string{"127.0.0.1:7379"},
		UnixMode:              0o700,
		MaxClients:            10_000,
		MaxClientsPerAddress:  1000,
		MaxConnects:           200,
		UnauthenticatedMemory: 4 << 20,
		MaxMemoryClients:      128 << 20,
		ClientOutputLimit:     1 << 20,
		MaxSubscriptions:      1024,
		ProtectedMode:         "on",
		TLSClientAuth:         ClientAuthOff,
		MaxOperations:         100_000,
		DrainTimeout:          10 * time.Second,
		Embedded:              5,
		Group:                 "default",
		Databases:             16,
		MasterTimeout:         100 * time.Millisecond,
		RestartGuard:          GuardStrict,
		MaxTTL:                time.Minute,
		MaxKeep:               10 * time.Minute,
		MaxWait:               10 * time.Minute,
		MaxWaiters:            100_000,
		MaxWaitersPerKey:      10_000,
		LongTTL:               TTLDeny,
		NoTTL:                 TTLDeny,
		IDsDurability:         IDsDurable,
		OTLPSample:            0.01,
		LogLevel:              "info",
		LogFormat:             "text",
	}
}
