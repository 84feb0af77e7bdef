package configs

// masters.go contains the list of masters. It is split, every entry is parsed (see
// address.go) and the whole checked: an odd number, no name or address twice.

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func mastersOption() option {
	return option{
		name: "masters", argument: "LIST", list: true, secret: true,
		help:    "[name=]host:port, redis[s]://user:pass@host, unix:/path",
		allowed: "3, 5, 7 or 9 of [name=]host:port, redis[s]://user:password@host:port, unix:/path",
		advice:  "separate entries by commas",
		set:     setMasters,
		show:    showMasters,
		check:   checkMasters,
	}
}

func showMasters(c *Config) string {
	names := make([]string, len(c.Masters))
	for i, master := range c.Masters {
		names[i] = master.String()
	}
	return strings.Join(names, ",")
}

// setMasters never shows an entry as it was given: any part of it may belong
// to a password with an unescaped comma, slash or at-sign.
func setMasters(c *Config, value any) []problem {
	given, err := decodeList(value)
	if err != nil {
		return []problem{{text: err.Error()}}
	}
	var entries []string
	for _, list := range given {
		entries = append(entries, strings.Split(list, ",")...)
	}
	return c.setMasterEntries(entries)
}

// mastersFileOption keeps URLs with passwords out of the list of processes and of
// the configuration file.
func mastersFileOption() option {
	return option{
		name: "masters-file", argument: "FILE",
		allowed: "path of a text file with one master a line, of at most 1 MiB", advice: "write the entries of masters, one a line; # begins a comment",
		set:   setMastersFile,
		show:  func(c *Config) string { return c.MastersFile },
		check: func(*Config) []problem { return nil },
	}
}

func setMastersFile(c *Config, value any) []problem {
	path, err := decodeText(value)
	if err != nil {
		return []problem{{text: err.Error()}}
	}
	if len(c.Masters) > 0 {
		return []problem{{text: "cannot be combined with masters", advice: "leave one out"}}
	}
	c.MastersFile = path
	text, err := readSmallFile(path)
	if err != nil {
		return []problem{{text: err.Error()}}
	}
	var entries []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			entries = append(entries, line)
		}
	}
	if len(entries) == 0 {
		return []problem{{text: "names no master"}}
	}
	problems := c.setMasterEntries(entries)
	for i := range problems {
		problems[i].value = strings.TrimSpace(strconv.Quote(path) + " " + problems[i].value)
	}
	return problems
}

// readSmallFile reads a file of at most maxFileSize bytes.
func readSmallFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFileSize {
		return "", errors.New("is too large")
	}
	content, err := os.ReadFile(path)
	var bare *fs.PathError
	if errors.As(err, &bare) {
		err = bare.Err
	}
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	return string(content), nil
}

// setMasterEntries sets the masters, one for each entry.
func (c *Config) setMasterEntries(entries []string) []problem {
	var masters []Master
	var problems []problem
	if hasLooseLogin(entries) {
		return []problem{{text: "has a login without a scheme before it", advice: "write redis:// before user:password@, and a comma in a password as %2C"}}
	}
	for _, entry := range entries {
		master, err := parseMaster(strings.TrimSpace(entry))
		if err != nil {
			shown := fmt.Sprintf("entry %d %q", len(masters)+len(problems)+1, redactEntry(entry))
			problems = append(problems, problem{value: shown, text: err.Error()})
			continue
		}
		masters = append(masters, master)
	}
	if len(problems) > 0 {
		return problems
	}
	c.Masters = masters
	return nil
}

// hasLooseLogin finds an entry with the end of a login and no beginning: the
// user omitted redis://, or a comma has split redis://user:pa,ss@host. This check
// comes first, so that no part of the list is shown.
func hasLooseLogin(entries []string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		_, place := cutName(strings.TrimSpace(entry))
		return strings.Contains(place, "@") && !strings.Contains(place, "://") && !strings.HasPrefix(place, "unix:/")
	})
}

func checkMasters(c *Config) []problem {
	if len(c.Masters) == 0 {
		return nil // embedded masters are used then, whose number is checked
	}
	problems := checkMajority(len(c.Masters))
	names := make(map[string]bool)
	addresses := make(map[string]bool)
	for _, master := range c.Masters {
		if text := masterProblem(master); text != "" {
			problems = append(problems, problem{value: master.String(), text: text})
		}
		if names[master.Name] {
			problems = append(problems, problem{value: master.String(), text: "has a name that another one has", advice: "give each master a name of its own"})
		}
		names[master.Name] = true
		if address := canonicalAddress(master); addresses[address] {
			problems = append(problems, problem{value: master.String(), text: "has the address of another one", advice: "a server has one vote: list each once"})
		} else {
			addresses[address] = true
		}
	}
	return problems
}

// checkMajority rejects a number of masters that no majority should be built of, and gives
// the reason.
func checkMajority(n int) []problem {
	p := problem{value: fmt.Sprintf("%d masters", n)}
	switch {
	case n > 9:
		p.text, p.advice = "are more than a quorum should wait for", "use 9 at most; for more load, run more groups"
	case n < 3:
		p.text, p.advice = "cannot lose one and still have a majority", "use 3, or 5 to lose two"
	case n%2 == 0:
		p.text = fmt.Sprintf("survive the loss of %d, as %d do, and need one answer more for every decision: the number must be odd", (n-1)/2, n-1)
		p.advice = fmt.Sprintf("use %d or %d", n-1, n+1)
	default:
		return nil
	}
	return []problem{p}
}

// maxName holds every default name: a host of maxHost bytes and its port.
const maxName = 264

// masterProblem checks the same as parseMaster, for a Master that was built by hand.
func masterProblem(m Master) string {
	if m.Name == "" || len(m.Name) > maxName || hasBlank(m.Name) || strings.Contains(m.Name, ",") {
		return "has a name that is empty, too long, or holds a blank or a comma"
	}
	switch m.Network {
	case "unix":
		return socketPathProblem(m.Address)
	case "tcp":
		host, port, err := net.SplitHostPort(m.Address)
		if err != nil {
			return "has an address that is not host:port"
		}
		if text := portProblem(port, 1); text != "" {
			return text
		}
		return hostProblem(host)
	}
	return `has a network that is neither "tcp" nor "unix"`
}

// canonicalAddress returns the same text for two spellings of one address. It cannot detect
// two names of one server: those are found when the servers answer.
func canonicalAddress(m Master) string {
	if m.Network == "unix" {
		return filepath.Clean(m.Address)
	}
	host, port, err := net.SplitHostPort(m.Address)
	if err != nil {
		return m.Address
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), strings.TrimLeft(port, "0"))
}
