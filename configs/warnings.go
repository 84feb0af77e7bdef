package configs

// warnings.go finds settings that are valid but unwise.

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

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
	secret := slices.ContainsFunc(c.Masters, func(m Master) bool { return m.Password != "" })
	socket := slices.ContainsFunc(c.Listen, func(address string) bool { return strings.HasPrefix(address, "unix:") })
	warn(secret && masters == "--masters", "--masters holds a password, which every user of this machine can read in the list of processes: use --masters-file, or REDLOCKD_MASTERS")
	warn(secret && masters == c.File && readableByAll(c.File), "%[1]s holds a password and every user of this machine can read it: chmod o-r %[1]s", c.File)
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
