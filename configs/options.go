package configs

// options.go lists all options, in the order and the groups of --help.

import (
	"fmt"
	"strings"
	"time"
)

// group is a block of --help.
type group struct {
	title   string
	options []option
}

func groups() []group {
	return []group{
		{"Clients", append(clientOptions(), accessOptions()...)},
		{"Masters", masterOptions()},
		{"Locks", lockOptions()},
		{"Daemon", daemonOptions()},
	}
}

func clientOptions() []option {
	return []option{
		listenOption(),
		unixModeOption(),
		intOption("max-clients", "at once",
			"raise it, or spread the clients over more daemons",
			1, 1_000_000, func(c *Config) *int { return &c.MaxClients }),
		intOption("max-clients-per-address", "",
			"raise it where many clients share an address, or set 0 for no limit",
			0, 1_000_000, func(c *Config) *int { return &c.MaxClientsPerAddress }),
		intOption("max-connects", "",
			"raise it where many clients share an address and start together, or set 0 for no limit",
			0, 1_000_000, func(c *Config) *int { return &c.MaxConnects }),
		intOption("unauthenticated-memory", "bytes",
			"raise it if honest clients get the error that names this option",
			256<<10, 1<<30, func(c *Config) *int { return &c.UnauthenticatedMemory }),
		intOption("max-memory-clients", "",
			"raise it if evicted_clients in INFO grows and memory allows",
			1<<20, 1<<30, func(c *Config) *int { return &c.MaxMemoryClients }),
		intOption("client-output-limit", "bytes; of one client",
			"raise it if clients are closed that read their replies late",
			256<<10, 1<<30, func(c *Config) *int { return &c.ClientOutputLimit }),
		intOption("max-subscriptions", "",
			"raise it where one connection subscribes to more channels and patterns",
			1, 1_000_000, func(c *Config) *int { return &c.MaxSubscriptions }),
		durationOption("client-timeout", "of silence; of stopping",
			"choose several times the pause between two commands of a client that holds locks with HOLD",
			0, 24*time.Hour, func(c *Config) *time.Duration { return &c.ClientTimeout }),
		durationOption("drain-timeout", "",
			"give commands in flight time to end",
			time.Millisecond, 10*time.Minute, func(c *Config) *time.Duration { return &c.DrainTimeout }),
	}
}

func masterOptions() []option {
	return []option{
		mastersOption(),
		mastersFileOption(),
		embeddedOption(),
		groupOption(),
		keyPrefixOption(),
		intOption("databases", "",
			"match what the masters have (CONFIG GET databases)",
			1, 256, func(c *Config) *int { return &c.Databases }),
		durationOption("master-timeout", "an answer later than this does not count",
			"choose several times the round trip to the slowest master",
			10*time.Millisecond, 5*time.Second, func(c *Config) *time.Duration { return &c.MasterTimeout }),
		choiceOption("restart-guard", "of restarted masters",
			"keep strict wherever two holders at once do harm",
			[]string{GuardStrict, GuardOff}, func(c *Config) *string { return &c.RestartGuard }),
		switchOption("assume-durable", "",
			func(c *Config) *bool { return &c.AssumeDurable }),
		switchOption("bootstrap", "",
			func(c *Config) *bool { return &c.Bootstrap }),
	}
}

func lockOptions() []option {
	return []option{
		durationOption("max-ttl", "longest lease, KEEP, WAIT",
			"choose the longest lease that is really needed, the same in all daemons",
			10*time.Millisecond, 24*time.Hour, func(c *Config) *time.Duration { return &c.MaxTTL }),
		durationOption("max-keep", "",
			"choose the longest KEEP that is really needed, the same in all daemons",
			10*time.Millisecond, 24*time.Hour, func(c *Config) *time.Duration { return &c.MaxKeep }),
		durationOption("max-wait", "",
			"choose the longest wait that a client may hold a connection for",
			10*time.Millisecond, 24*time.Hour, func(c *Config) *time.Duration { return &c.MaxWait }),
		intOption("max-operations", "up to",
			"raise it if clients are answered TRYLATER and memory allows",
			1, 10_000_000, func(c *Config) *int { return &c.MaxOperations }),
		intOption("max-waiters", "",
			"raise it if clients that wait are answered TRYLATER and memory allows (1 kB each)",
			1, 10_000_000, func(c *Config) *int { return &c.MaxWaiters }),
		intOption("max-waiters-per-key", "",
			"raise it if clients that wait are answered TRYLATER and memory allows (1 kB each)",
			1, 10_000_000, func(c *Config) *int { return &c.MaxWaitersPerKey }),
		choiceOption("long-ttl", "SET, EVAL",
			"use clamp where clients request longer leases than they need",
			[]string{TTLDeny, TTLClamp}, func(c *Config) *string { return &c.LongTTL }),
		choiceOption("no-ttl", "",
			"use lease where clients request no expiry and renew or finish within max-ttl",
			[]string{TTLDeny, TTLLease, TTLAllow}, func(c *Config) *string { return &c.NoTTL }),
		scriptClassOption(),
		choiceOption("ids-durability", "ids need masters that fsync; DINFO names clients",
			"keep on wherever an id given twice does harm",
			[]string{IDsDurable, IDsVolatile}, func(c *Config) *string { return &c.IDsDurability }),
		switchOption("lock-info", "", func(c *Config) *bool { return &c.LockInfo }),
	}
}

func daemonOptions() []option {
	return []option{
		adminOption(),
		switchOption("pprof", "", func(c *Config) *bool { return &c.Pprof }),
		compatTestOption(),
		otlpEndpointOption(),
		otlpSampleOption(),
		choiceOption("log-level", "log on stderr",
			"use info unless you are looking for something",
			[]string{"debug", "info", "warn", "error"}, func(c *Config) *string { return &c.LogLevel }),
		choiceOption("log-format", "",
			"use json where a machine reads the log",
			[]string{"text", "json"}, func(c *Config) *string { return &c.LogFormat }),
		fileOption(),
	}
}

func embeddedOption() option {
	o := intOption("embedded", "or masters inside this process, for trying out only",
		"leave it out, or leave --masters out", 3, 9, func(c *Config) *int { return &c.Embedded })
	o.allowed = "3, 5, 7 or 9, and only without masters"
	o.check = func(c *Config) []problem {
		switch {
		case len(c.Masters) > 0 && c.Embedded != 0:
			return []problem{{text: "cannot be combined with masters"}}
		case len(c.Masters) == 0:
			return checkMajority(c.Embedded)
		}
		return nil
	}
	return o
}

func groupOption() option {
	return option{
		name: "group", argument: "NAME", help: "group of daemons; key prefix",
		allowed: wordAllowed, advice: "use the same short name in all daemons of these masters",
		set:  setter(decodeText, func(c *Config) *string { return &c.Group }),
		show: func(c *Config) string { return c.Group },
		check: func(c *Config) []problem {
			if wordPattern.MatchString(c.Group) {
				return nil
			}
			return []problem{{text: "is not a name"}}
		},
	}
}

// maxKeyPrefix leaves space: a key may have 512 bytes of its own.
const maxKeyPrefix = 64

func keyPrefixOption() option {
	return option{
		name: "key-prefix", argument: "TEXT", allowed: fmt.Sprintf("0 to %d bytes without blanks and control characters", maxKeyPrefix),
		advice: "use a short one such as locks:",
		set:    setter(decodeText, func(c *Config) *string { return &c.KeyPrefix }),
		show:   func(c *Config) string { return c.KeyPrefix },
		check: func(c *Config) []problem {
			switch {
			case len(c.KeyPrefix) > maxKeyPrefix:
				return []problem{{text: fmt.Sprintf("has %d bytes, too many", len(c.KeyPrefix))}}
			case hasBlank(c.KeyPrefix):
				return []problem{{text: "holds a blank or a control character"}}
			}
			return nil
		},
	}
}

// scriptClassOption is checked by the packages that parse scripts.
func scriptClassOption() option {
	return option{
		name: "script-class", argument: "SPEC", list: true,
		allowed: "<sha1>=<class>[,token=n[+n…]][,time=n<unit>][,keys=n][,args=n][,yes=answer[|answer…]][,no=answer[|answer…]], separated by blanks",
		advice:  "the error of the script that was refused has its SHA1",
		set: func(c *Config, value any) []problem {
			given, err := decodeList(value)
			if err != nil {
				return []problem{{text: err.Error()}}
			}
			c.ScriptClasses = nil
			for _, list := range given {
				c.ScriptClasses = append(c.ScriptClasses, strings.Fields(list)...)
			}
			return nil
		},
		show:  func(c *Config) string { return strings.Join(c.ScriptClasses, " ") },
		check: func(*Config) []problem { return nil },
	}
}

// fileOption is read before all others and is invalid in the file itself.
func fileOption() option {
	return option{
		name: "config", argument: "FILE", help: "TOML with these names; see configs/redlockd.toml",
		allowed: "path of a TOML file of at most 1 MiB", advice: "give it as --config or REDLOCKD_CONFIG",
		set:   setter(decodeText, func(c *Config) *string { return &c.File }),
		show:  func(c *Config) string { return c.File },
		check: func(*Config) []problem { return nil },
	}
}
