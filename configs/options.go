package configs

// options.go is the table of all options, in the order and the groups of --help: name,
// default, help, advice, value.

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// group is a block of --help.
type group struct {
	title   string
	options []option
}

// groups returns the options over the fields of a Config.
func groups(c *Config) []group {
	const waiters = "raise it if clients that wait are answered TRYLATER and memory allows (1 kB each)"
	const pem, readable = "path of a PEM file", "name a readable file"
	const ms, day = time.Millisecond, 24 * time.Hour
	return []group{
		{"Clients", []option{
			{"listen", "127.0.0.1:7379", "[tls:]host:port, unix:/path", "write for example 127.0.0.1:7379 or :7379",
				list(&c.Listen, "ADDRESS", ",", "host:port, :port, tls:host:port, unix:/path", splitCommas).checked(checkListen)},
			{"unix-mode", "0700", "permissions of a unix socket", `write for example "0770" for a group`,
				of(&c.UnixMode, "MODE", "not text in quotes", parseMode, showMode).allows("0000 to 0777, octal, in quotes").checked(checkMode)},
			{"max-clients", "10000", "connections at once", "raise it, or spread the clients over more daemons", integer(&c.MaxClients, 1, 1_000_000)},
			{"max-clients-per-address", "1000", "connections of one address; 0 = no limit", "raise it where many clients share an address, or set 0 for no limit", integer(&c.MaxClientsPerAddress, 0, 1_000_000)},
			{"max-connects", "200", "new connections a second of one address; 0 = no limit", "raise it where many clients share an address and start together, or set 0 for no limit", integer(&c.MaxConnects, 0, 1_000_000)},
			{"unauthenticated-memory", "4194304", "bytes of clients that have not logged in", "raise it if honest clients get the error that names this option", integer(&c.UnauthenticatedMemory, 256<<10, 1<<30)},
			{"max-memory-clients", "134217728", "bytes of commands and replies of all clients", "raise it if evicted_clients in INFO grows and memory allows", integer(&c.MaxMemoryClients, 1<<20, 1<<30)},
			{"client-output-limit", "1048576", "bytes of replies that one client may leave unread", "raise it if clients are closed that read their replies late", integer(&c.ClientOutputLimit, 256<<10, 1<<30)},
			{"max-subscriptions", "1024", "channels and patterns of one connection", "raise it where one connection subscribes to more channels and patterns", integer(&c.MaxSubscriptions, 1, 1_000_000)},
			{"client-timeout", "", "a silence that ends a connection; 0 = none", "choose several times the pause between two commands of a client that holds locks with HOLD",
				duration(&c.ClientTimeout, 0, day)},
			{"drain-grace", "5s", "how long SIGTERM leaves the port open, with /readyz 503", "choose longer than balancers need to notice that /readyz is 503", duration(&c.DrainGrace, 0, 10*time.Minute)},
			{"drain-timeout", "10s", "after that, how long commands in flight may take", "give commands in flight time to end", duration(&c.DrainTimeout, ms, 10*time.Minute)},
			{"requirepass", "", "of the user default; better in a file",
				"give it as REDLOCKD_REQUIREPASS or in a file, where other users of the machine do not see it", text(&c.RequirePass, "PASSWORD", fmt.Sprintf("1 to %d bytes", maxPassword)).hidden().checked(checkPassword)},
			{"users", "", "TOML file of users and their rights", "configs/users.toml is an example", usersFile(c)},
			{"protected-mode", "on", "without passwords, only clients of this machine", "turn it off only where every client that reaches the port may do everything", choice(&c.ProtectedMode, "on", "off")},
			{"tls-cert", "", "PEM, for addresses with tls:", readable, text(&c.TLSCert, "FILE", pem).checked(checkTLSCert)},
			{"tls-key", "", "PEM", readable, text(&c.TLSKey, "FILE", pem).checked(checkTLSKey)},
			{"tls-ca", "", "PEM, of the clients' certificates", readable, text(&c.TLSCA, "FILE", pem).checked(checkTLSCA)},
			{"tls-client-auth", ClientAuthOff, "certificates of clients", "use required where only clients with a certificate may connect",
				choice(&c.TLSClientAuth, ClientAuthOff, "optional", "required")},
			{"cluster-announce", "", "this daemon's host:port, for clients of a Redis Cluster", "write the address at which clients reach this daemon, such as 10.0.0.1:7379, another one in each daemon",
				text(&c.ClusterAnnounce, "ADDRESS", "host:port, or nothing").checked(checkAnnounce)},
		}},
		{"Masters", []option{
			{"masters", "", "[name=]host:port, redis[s]://user:pass@host, unix:/path", "separate entries by commas", masterList(c)},
			{"masters-file", "", "the same, one a line", "write the entries of masters, one a line; # begins a comment", mastersFile(c)},
			{"embedded", "5", "masters inside this process, for trying out only", "leave it out, or leave --masters out", integer(&c.Embedded, 3, 9).allows("3, 5, 7 or 9, and only without masters").checked(checkEmbedded)},
			{"group", "default", "name of the group of masters", "use the same short name in all daemons of these masters", groupName(c)},
			{"key-prefix", "", "put before every key on the masters", "use a short one such as locks:",
				text(&c.KeyPrefix, "TEXT", fmt.Sprintf("0 to %d bytes without blanks and control characters, not %s or a beginning of it", maxKeyPrefix, ownKeys)).checked(checkKeyPrefix)},
			{"key-prefixes", "", "the key prefixes of all daemons of the group", "list the key prefixes of all daemons of the group, the same in all of them, for example orders:,jobs:",
				list(&c.KeyPrefixes, "LIST", ",", fmt.Sprintf("at most %d key prefixes, of which none begins with another one; no text before the first comma is the empty one", maxPrefixes), splitCommas).checked(checkKeyPrefixes)},
			{"databases", "16", "logical databases", "match what the masters have (CONFIG GET databases)", integer(&c.Databases, 1, 256)},
			{"master-timeout", "100ms", "an answer later than this does not count",
				"choose several times the round trip to the slowest master", duration(&c.MasterTimeout, 10*ms, 5*time.Second)},
			{"follow-to", "", "further addresses that get the login", "write addresses of present and coming masters, * stands for any text: redis-*.example.net:6379,10.0.0.*:6379",
				list(&c.FollowTo, "LIST", ",", "host:port, with * for any part of it, separated by commas", splitCommas).checked(checkFollowTo)},
			{"restart-guard", "strict", "a master without its memory waits for max-ttl", "keep strict wherever two holders at once do harm", choice(&c.RestartGuard, "strict", GuardOff)},
			{"assume-durable", "", "your word that masters keep what they acknowledge", "write --assume-durable or --assume-durable=false", truth(&c.AssumeDurable)},
			{"bootstrap", "", "may begin a new group; better run redlockd bootstrap once", "write --bootstrap or --bootstrap=false", truth(&c.Bootstrap)},
		}},
		{"Locks", []option{
			{"max-ttl", "1m", "longest lease", "choose the longest lease that is really needed, the same in all daemons", duration(&c.MaxTTL, 10*ms, day)},
			{"max-keep", "10m", "longest time that ended work is remembered", "choose the longest time that ended work is remembered that is really needed, the same in all daemons", duration(&c.MaxKeep, 10*ms, day)},
			{"max-wait", "10m", "longest WAIT", "choose the longest wait that a client may hold a connection for", duration(&c.MaxWait, 10*ms, day)},
			{"max-hold", "0s", "longest hold, over all extensions", "choose the longest time that one holder may keep a lock, the same in all daemons", holdTime(&c.MaxHold)},
			{"max-operations", "100000", "operations in flight", "raise it if clients are answered TRYLATER and memory allows", integer(&c.MaxOperations, 1, 10_000_000)},
			{"max-waiters", "100000", "requests that wait", waiters, integer(&c.MaxWaiters, 1, 10_000_000)},
			{"max-waiters-per-key", "10000", "of one key", waiters, integer(&c.MaxWaitersPerKey, 1, 10_000_000)},
			{"long-ttl", "deny", "of a SET or script with a lease above max-ttl", "use clamp where clients request longer leases than they need", choice(&c.LongTTL, "deny", "clamp")},
			{"no-ttl", "deny", "of a SET or script without a lease", "use lease where clients request no expiry and renew or finish within max-ttl", choice(&c.NoTTL, "deny", "lease", "allow")},
			// Checked by the packages that parse scripts.
			{"script-class", "", "what a script does that is not recognised", "the error of the script that was refused has its SHA1", list(&c.ScriptClasses, "SPEC", " ",
				"<sha1>=<class>[,token=n[+n…]][,time=n<unit>][,keys=n][,args=n][,yes=answer[|answer…]][,no=answer[|answer…]], separated by blanks",
				strings.Fields)},
			{"ids-durability", "on", "DNEXTID only on masters that sync their disk", "keep on wherever an id given twice does harm",
				choice(&c.IDsDurability, "on", IDsVolatile)},
			{"lock-info", "", "DINFO of every daemon shows who took a lock", "write --lock-info or --lock-info=false", truth(&c.LockInfo)},
			// Checked by the package that has the patterns.
			{"fair-keys", "", "keys whose locks have FAIR: first come, first served", "write for example queue:*, the same in all daemons", text(&c.FairKeys, "PATTERN", "a pattern of keys with * and ?")},
		}},
		{"Daemon", []option{
			{"admin-listen", "", "HTTP: page, metrics, health", "write for example 127.0.0.1:9379",
				text(&c.AdminListen, "ADDRESS", "host:port, :port, tls:host:port").checked(checkAdmin)},
			{"metrics-prefixes", "", "prefixes of keys that have metrics of their own", "write for example orders:,jobs: and keep the list short: each prefix is a time series for each outcome",
				list(&c.MetricsPrefixes, "LIST", ",", fmt.Sprintf("at most %d beginnings of keys, separated by commas", maxPrefixes), splitCommas).checked(checkPrefixes)},
			{"pprof", "", "profiles at the admin endpoint", "write --pprof or --pprof=false", truth(&c.Pprof)},
			{"compat-test", "", "for test suites of lock libraries; never in production", "write --compat-test or --compat-test=false",
				truth(&c.CompatTest).allows("true, false; true only if listen has addresses of this machine alone").checked(checkCompatTest)},
			{"otlp-endpoint", "", "traces, to an OpenTelemetry collector", "name an OpenTelemetry collector, for example http://127.0.0.1:4318",
				text(&c.OTLPEndpoint, "URL", "http://host:port or https://host:port, with the path of the receiver if it is not /v1/traces").hidden().checked(checkOTLP)},
			{"otlp-sample", "0.01", "share of operations that are traced", "write 0.01 for one operation in a hundred; those with a sampled traceparent in META are always traced", share(&c.OTLPSample)},
			{"log-level", "info", "of the log on stderr", "use info unless you are looking for something", choice(&c.LogLevel, "debug", "info", "warn", "error")},
			{"log-format", "text", "of the same", "use json where a machine reads the log", choice(&c.LogFormat, "text", "json")},
			// Read before all others, and invalid in the file itself.
			{"config", "", "TOML file with these names; see configs/redlockd.toml", "give it as --config or REDLOCKD_CONFIG", text(&c.File, "FILE", tomlAllowed)},
		}},
	}
}

// splitCommas leaves out blanks around commas.
func splitCommas(text string) []string { return commas.Split(strings.TrimSpace(text), -1) }

var commas = regexp.MustCompile(`\s*,\s*`)

func options(c *Config) (all []option) {
	for _, group := range groups(c) {
		all = append(all, group.options...)
	}
	return all
}

// Default returns the default settings: five embedded masters behind a port that only
// this machine reaches.
func Default() Config {
	var c Config
	for _, o := range options(&c) {
		if o.preset == "" {
			continue
		}
		if err := o.set(o.preset); err != nil {
			panic(fmt.Sprintf("configs: the default of %s: %v", o.name, err))
		}
	}
	return c
}

// Settings returns the options whose name matches a glob pattern (* ? [a-z]), with
// the present values, passwords left out. A malformed pattern matches none.
func (c *Config) Settings(pattern string) (found [][2]string) {
	for _, o := range options(c) {
		if matches, err := path.Match(pattern, o.name); err == nil && matches {
			found = append(found, [2]string{o.name, o.show()})
		}
	}
	return found
}

// RedactArgs copies a command line, with three asterisks in place of the value of
// every option that may hold a password.
func RedactArgs(args []string) []string {
	secret := make(map[string]bool)
	for _, o := range options(new(Config)) {
		secret["--"+o.name] = o.secret
	}
	shown := slices.Clone(args)
	for i, arg := range args {
		if name, _, joined := strings.Cut(arg, "="); secret[name] && joined {
			shown[i] = name + "=***"
		} else if i > 0 && secret[args[i-1]] {
			shown[i] = "***"
		}
	}
	return shown
}

// OptionRow is one option, for the manual and the completion of shells; Argument is "" for a switch.
type OptionRow struct{ Name, Argument, Help string }

// Rows returns all options of the command line.
func Rows() (rows []OptionRow) {
	defaults := Default()
	for _, o := range options(&defaults) {
		help := "Allowed: " + o.allowed + ". "
		if o.show() != "" {
			help = "Default: " + o.show() + ". " + help
		}
		rows = append(rows, OptionRow{o.name, o.argument, help + "Advice: " + o.advice + o.notation})
	}
	return append(rows, OptionRow{"version", "", "Print the version"}, OptionRow{"help", "", "Print the help"})
}

// Help returns the text of --help: each option in a line, of at most 100 columns.
func Help() string {
	var text strings.Builder
	defaults := Default()
	for _, group := range groups(&defaults) {
		fmt.Fprintf(&text, "\n%s\n", group.title)
		for _, o := range group.options {
			text.WriteString(helpLine("--"+o.name+" "+o.argument, o.help, o.show()))
		}
	}
	text.WriteString(helpLine("--version, -v", "", "") + helpLine("--help, -h", "", ""))
	text.WriteString("\nEach also as REDLOCKD_MAX_TTL=60s, or max-ttl = \"60s\" in the file. Flags win, then environment.\n")
	return text.String()
}

func helpLine(flag, help, value string) string {
	if value != "" && value != "false" {
		help = strings.TrimLeft(help+" ["+value+"]", " ")
	}
	return strings.TrimRight(fmt.Sprintf("  %-37s %s", flag, help), " ") + "\n"
}
