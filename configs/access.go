package configs

// access.go contains the options for passwords, users and TLS.

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Values of --tls-client-auth.
const (
	ClientAuthOff      = "off"      // no certificate is requested from clients
	ClientAuthOptional = "optional" // a certificate that is sent must be signed by tls-ca
	ClientAuthRequired = "required" // every client must send one signed by tls-ca
)

// maxPassword is the longest that a client can send before it is authenticated.
const maxPassword = 512

func accessOptions() []option {
	return []option{
		passwordOption(),
		usersOption(),
		choiceOption("protected-mode", "",
			"turn it off only where every client that reaches the port may do everything",
			[]string{"on", "off"}, func(c *Config) *string { return &c.ProtectedMode }),
		pathOption("tls-cert", "PEM; the CA is that of clients", func(c *Config) *string { return &c.TLSCert }, checkTLSCert),
		pathOption("tls-key", "", func(c *Config) *string { return &c.TLSKey }, checkTLSKey),
		pathOption("tls-ca", "", func(c *Config) *string { return &c.TLSCA }, checkTLSCA),
		choiceOption("tls-client-auth", "whether clients show certificates",
			"use required where only clients with a certificate may connect",
			[]string{ClientAuthOff, ClientAuthOptional, ClientAuthRequired}, func(c *Config) *string { return &c.TLSClientAuth }),
	}
}

func passwordOption() option {
	return option{
		name: "requirepass", argument: "PASSWORD", help: "passwords; else local only", secret: true,
		allowed: fmt.Sprintf("1 to %d bytes", maxPassword),
		advice:  "give it as REDLOCKD_REQUIREPASS or in a file, where other users of the machine do not see it",
		set:     setter(decodeSecret, func(c *Config) *Secret { return &c.RequirePass }),
		show:    func(c *Config) string { return c.RequirePass.String() },
		check: func(c *Config) []problem {
			if len(c.RequirePass) > maxPassword {
				return []problem{{text: "is too long"}}
			}
			return nil
		},
	}
}

// usersOption reads the file at once, so that a daemon with a users file that
// cannot be used does not start.
func usersOption() option {
	return option{
		name: "users", argument: "FILE", allowed: "path of a TOML file of at most 1 MiB", advice: "configs/users.toml is an example",
		show: func(c *Config) string { return c.UsersFile },
		set: func(c *Config, value any) []problem {
			path, err := decodeText(value)
			if err != nil {
				return []problem{{text: err.Error()}}
			}
			c.UsersFile = path
			users, errs := readUsers(path)
			c.Users = users
			problems := make([]problem, len(errs))
			for i, e := range errs {
				problems[i] = problem{value: strconv.Quote(path), text: e.Problem, advice: e.Advice}
				if e.Field != "users" {
					problems[i].text = e.Field + " " + e.Problem
				}
			}
			return problems
		},
		check: func(c *Config) []problem {
			both := slices.ContainsFunc(c.Users, func(u User) bool { return u.Name == "default" })
			if both && c.RequirePass != "" {
				return []problem{{text: "has a user default, and requirepass gives that user a password, too", advice: "leave one out"}}
			}
			return nil
		},
	}
}

func pathOption(name, help string, field func(*Config) *string, check func(*Config) []problem) option {
	return option{
		name: name, argument: "FILE", help: help, allowed: "path of a PEM file", advice: "name a readable file",
		set:   setter(decodeText, field),
		show:  func(c *Config) string { return *field(c) },
		check: check,
	}
}

// listensTLS reports whether an address of listen uses TLS.
func (c *Config) listensTLS() bool {
	return slices.ContainsFunc(append([]string{c.AdminListen}, c.Listen...), func(address string) bool { return strings.HasPrefix(address, tlsPrefix) })
}

func checkTLSCert(c *Config) []problem {
	switch {
	case c.TLSCert == "" && c.listensTLS():
		return []problem{{text: "is missing, and an address of listen or admin-listen begins with tls:", advice: "give --tls-cert and --tls-key"}}
	case c.TLSCert != "" && !c.listensTLS():
		return []problem{{text: "has no effect: no address of listen begins with tls:, nor does admin-listen", advice: "write tls:host:port in --listen"}}
	}
	return nil
}

func checkTLSKey(c *Config) []problem {
	if (c.TLSKey == "") != (c.TLSCert == "") {
		return []problem{{text: "and tls-cert belong together", advice: "give both"}}
	}
	return nil
}

func checkTLSCA(c *Config) []problem {
	switch {
	case c.TLSCA == "" && c.TLSClientAuth != ClientAuthOff && c.TLSClientAuth != "":
		return []problem{{text: "is missing, and tls-client-auth requests certificates", advice: "give the CA that signs them"}}
	case c.TLSCA != "" && c.TLSClientAuth == ClientAuthOff:
		return []problem{{text: "has no effect while tls-client-auth is off", advice: "set tls-client-auth to optional or required"}}
	}
	return nil
}

// unixModeOption is octal and text: TOML reads 700 as a decimal number.
func unixModeOption() option {
	return option{
		name: "unix-mode", argument: "MODE", allowed: "0000 to 0777, octal, in quotes", advice: `write for example "0770" for a group`,
		show: func(c *Config) string { return fmt.Sprintf("%04o", uint32(c.UnixMode)) },
		set: func(c *Config, value any) []problem {
			text, err := decodeText(value)
			if err != nil {
				return []problem{{text: err.Error()}}
			}
			mode, err := strconv.ParseUint(text, 8, 16)
			if err != nil {
				return []problem{{text: "is not an octal number"}}
			}
			c.UnixMode = fs.FileMode(mode)
			return nil
		},
		check: func(c *Config) []problem {
			if c.UnixMode&^0o777 != 0 {
				return []problem{{text: "has other bits than those of permissions"}}
			}
			return nil
		},
	}
}
