package configs

// warnings.go finds settings that are valid but unwise.

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	// worldReadable is the permission bit that lets every user of the machine read.
	worldReadable = 0o004
	// worldBits are all that every user of the machine is allowed.
	worldBits = 0o007
)

func (l *loader) warnings() []string {
	var found []string
	secret := slices.ContainsFunc(l.config.Masters, func(m Master) bool { return m.Password != "" })
	switch source := l.source("masters"); {
	case secret && source == "--masters":
		found = append(found, "--masters holds a password, which every user of this machine can read in the list of processes: use --masters-file, or REDLOCKD_MASTERS")
	case secret && source == l.config.File:
		if readableByAll(source) {
			found = append(found, fmt.Sprintf("%s holds a password and every user of this machine can read it: chmod o-r %s", source, source))
		}
	}
	if path := l.config.MastersFile; path != "" && secret && readableByAll(path) {
		found = append(found, fmt.Sprintf("%s holds a password and every user of this machine can read it: chmod 600 %s", path, path))
	}
	if l.config.UnixMode&worldBits != 0 && slices.ContainsFunc(l.config.Listen, func(address string) bool { return strings.HasPrefix(address, "unix:") }) {
		found = append(found, fmt.Sprintf("unix-mode = %04o: every user of this machine can connect to the socket; use 0770 and a group", uint32(l.config.UnixMode)))
	}
	if l.config.CompatTest {
		found = append(found, "compat-test = true: any client may overwrite any lock and empty the masters, and locks need no expiry: never in production")
	}
	found = append(found, l.accessWarnings()...)
	if l.config.RestartGuard == GuardOff {
		found = append(found, "restart-guard = off: after a master restarts without its memory, two clients may hold one lock")
	}
	if l.config.IDsDurability == IDsVolatile {
		found = append(found, "ids-durability = off: after a crash of masters, ids may be given a second time")
	}
	if l.config.BootstrapWarning != "" {
		found = append(found, l.config.BootstrapWarning)
	}
	return found
}

// bootstrapWarning contains the source, so that the operator can remove the option.
func (l *loader) bootstrapWarning() string {
	if !l.config.Bootstrap {
		return ""
	}
	return fmt.Sprintf("bootstrap = true (from %s) stays in force: should all masters lose their memory at once, locks still held could be granted again; take it out and use `redlockd bootstrap` once instead", l.source("bootstrap"))
}

// accessWarnings are about passwords that others can read, and about ports without a
// login.
func (l *loader) accessWarnings() []string {
	var found []string
	switch source := l.source("requirepass"); {
	case l.config.RequirePass == "":
	case source == "--requirepass":
		found = append(found, "--requirepass is a password, which every user of this machine can read in the list of processes: use REDLOCKD_REQUIREPASS or a file")
	case source == l.config.File && readableByAll(source):
		found = append(found, fmt.Sprintf("%s holds requirepass and every user of this machine can read it: chmod o-r %s", source, source))
	}
	if path := l.config.UsersFile; path != "" && readableByAll(path) {
		found = append(found, fmt.Sprintf("%s holds digests of passwords and every user of this machine can read it: chmod o-r %s", path, path))
	}
	if l.config.ProtectedMode == "off" && l.config.RequirePass == "" && len(l.config.Users) == 0 {
		found = append(found, "protected-mode = off without requirepass and users: every client that reaches this port may do everything")
	}
	return found
}

func readableByAll(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&worldReadable != 0
}
