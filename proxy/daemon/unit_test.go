package daemon

// Tests of the systemd unit: each line is an option of systemd with a value of its kind, and
// the command starts, reloads and stops the daemon. Nothing here runs under systemd.

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unitKinds are the options of systemd that the unit may have, and the form of their values.
var unitKinds = map[string]string{
	"[Unit]":    "Description=.+ Documentation=file:/.+ After=units Wants=units",
	"[Install]": "WantedBy=units",
	"[Service]": "Type=exec ExecStart=/.+ ExecReload=/.+ Restart=on-failure RestartSec=time TimeoutStopSec=time LimitNOFILE=[0-9]+ " +
		"EnvironmentFile=-?/.+ User=[a-z]+ DynamicUser=yes ProtectSystem=strict ProtectHome=yes PrivateTmp=yes PrivateDevices=yes ProtectProc=invisible " +
		"ProcSubset=pid ProtectClock=yes ProtectHostname=yes ProtectKernelLogs=yes ProtectKernelModules=yes ProtectKernelTunables=yes " +
		"ProtectControlGroups=yes NoNewPrivileges=yes CapabilityBoundingSet= AmbientCapabilities= LockPersonality=yes MemoryDenyWriteExecute=yes " +
		"RestrictAddressFamilies=(AF_[A-Z0-9]+\\s?)+ RestrictNamespaces=yes RestrictRealtime=yes RestrictSUIDSGID=yes RemoveIPC=yes " +
		"SystemCallArchitectures=native SystemCallFilter=~?(@[a-z-]+\\s?)+ SystemCallErrorNumber=E[A-Z]+ UMask=0[0-7]{3}",
}

// unit has the values of each option, by section and name.
type unit map[string][]string

// decodeUnit reads a unit and refuses what it does not know.
func decodeUnit(text string) (unit, error) {
	all, section := unit{}, ""
	for number, line := range strings.Split(text, "\n") {
		switch {
		case line == "", line[0] == '#':
			continue
		case unitKinds[line] != "":
			section = line
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		form, known := "", false
		for _, kind := range strings.Fields(unitKinds[section]) {
			if is, f, _ := strings.Cut(kind, "="); is == name {
				form, known = f, true
			}
		}
		form = strings.NewReplacer("units", `[a-z.-]+( [a-z.-]+)*`, "time", `[0-9]+s`).Replace(form)
		if !known || !regexp.MustCompile("^("+form+")$").MatchString(value) {
			return nil, fmt.Errorf("line %d: %q is no option of %s with a value of the form %s", number+1, line, section, form)
		}
		all[name] = append(all[name], value)
	}
	return all, nil
}

func shippedUnit(t *testing.T) unit {
	t.Helper()
	u, err := decodeUnit(file(t, "redlockd.service"))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWrongUnits_AreFound(t *testing.T) {
	shipped := file(t, "redlockd.service")
	for _, change := range [][2]string{
		{"ProtectClock=yes", "ProtectClok=yes"}, {"ProtectHome=yes", "ProtectHome=ja"}, {"TimeoutStopSec=20s", "TimeoutStopSec=20 s"},
		{"[Service]", "[Servic]"}, {"UMask=0077", "UMask=77"}, {"AF_INET6", "INET6"}, {"ExecStart=/usr", "ExecStart=usr"}, {"Wants=", "WantedBy="},
	} {
		changed := strings.Replace(shipped, change[0], change[1], 1)
		if changed == shipped {
			t.Errorf("the unit has no %s", change[0])
		}
		if _, err := decodeUnit(changed); err == nil {
			t.Errorf("%s in place of %s is not noticed", change[1], change[0])
		}
	}
}

// start is the unit's command with the shipped file of options.
func (u unit) start(t *testing.T) (args []string) {
	t.Helper()
	line, ok := strings.CutPrefix(u["ExecStart"][0], "/usr/bin/redlockd ")
	if !ok {
		t.Fatalf("it starts %s", u["ExecStart"][0])
	}
	return strings.Fields(strings.Replace(line, "/etc/redlockd/redlockd.toml", "configs/redlockd.toml", 1))
}

func TestUnit_StartsTheDaemonWithItsOptions(t *testing.T) {
	u := shippedUnit(t)
	config := wantServes(t, u.start(t), nil, "7379", "9379")
	stop, err := time.ParseDuration(u["TimeoutStopSec"][0])
	if err != nil || stop <= config.DrainGrace+config.DrainTimeout || config.DrainGrace == 0 {
		t.Errorf("TimeoutStopSec=%s, a drain-grace of %s and a drain-timeout of %s", stop, config.DrainGrace, config.DrainTimeout)
	}
	var files int
	if _, err := fmt.Sscan(u["LimitNOFILE"][0], &files); err != nil || files < config.MaxClients+9*config.Databases+1000 {
		t.Errorf("LimitNOFILE=%d for %d clients, %d databases on up to nine masters, and a thousand others", files, config.MaxClients, config.Databases)
	}
}

// systemd takes an existing user of this name in place of a dynamic one, which could read no file
// that is kept from others. The unit tells how to create it for the file of its users.
func TestUnit_NamesTheUserThatReadsFiles(t *testing.T) {
	user := shippedUnit(t)["User"][0]
	text := file(t, "redlockd.service")
	_, users, _ := strings.Cut(file(t, "redlockd.toml"), "#users = ")
	users = strings.Trim(strings.SplitN(users, "\n", 2)[0], `"`)
	for _, line := range []string{"useradd --system --shell /usr/sbin/nologin " + user, "chown root:" + user + " " + users + " && chmod 640 " + users} {
		if !strings.Contains(text, "#   "+line+"\n") {
			t.Errorf("the unit has no line %q", line)
		}
	}
}

// The daemon of the unit's command is ready, goes on after the reload, and stops with 0.
func TestUnit_StartsReloadsAndStopsTheDaemon(t *testing.T) {
	u := shippedUnit(t)
	o := operate(t, onLoopback(u.start(t))...)
	o.await(t, "/readyz", http.StatusOK)
	if u["ExecReload"][0] != "/bin/kill -HUP $MAINPID" {
		t.Fatalf("it reloads with %s", u["ExecReload"][0])
	}
	if err := o.process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	c := dial(t, o.port)
	c.lock(t, "invoices")
	o.stop(t)
}

// verified writes the unit with a program that exists.
func verified(t *testing.T) (verify, path string) {
	t.Helper()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine: systemd itself does not check the unit")
	}
	path = filepath.Join(t.TempDir(), "redlockd.service") // the program is not installed where the test runs
	text := strings.ReplaceAll(file(t, "redlockd.service"), "/usr/bin/redlockd", os.Args[0])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return verify, path
}

func TestUnit_IsVerifiedBySystemd(t *testing.T) {
	verify, path := verified(t)
	if output, err := exec.Command(verify, "verify", "--recursive-errors=no", path).CombinedOutput(); err != nil || bytes.Contains(output, []byte("redlockd.service")) {
		t.Errorf("%v\n%s", err, output)
	}
}

// SECURITY.md promises that the unit removes most rights. 100 is no protection at all.
func TestUnit_ExposesLittle(t *testing.T) {
	const most = "20"
	verify, path := verified(t)
	output, err := exec.Command(verify, "security", "--offline=true", "--no-pager", "--threshold="+most, path).CombinedOutput()
	if bytes.Contains(output, []byte("unrecognized option")) {
		t.Skip("this systemd-analyze judges no files: the exposure is not measured")
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) || !bytes.Contains(output, []byte("Overall exposure level")) {
		t.Errorf("%v\n%s", err, output)
	}
}
