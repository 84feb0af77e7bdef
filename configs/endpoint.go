package configs

// endpoint.go checks hosts, ports and socket paths, for listeners and masters. The
// results are ends of sentences, "" for a valid value.

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxSocketPath is the longest that every supported system can store in a socket's
	// address (108 bytes with the closing zero on Linux, 104 on BSD and macOS).
	maxSocketPath = 103
	maxHost       = 253 // of a host name, RFC 1035
)

func socketPathProblem(path string) string {
	switch {
	case !strings.HasPrefix(path, "/"):
		return "is not an absolute path"
	case strings.HasPrefix(path, "//"):
		return "begins with two slashes"
	case strings.HasSuffix(path, "/"):
		return "is a directory and not a socket"
	case len(path) > maxSocketPath:
		return fmt.Sprintf("has %d bytes, a socket's path has at most %d", len(path), maxSocketPath)
	case hasBlank(path) || strings.Contains(path, ","):
		return "holds a blank, a comma or a control character"
	}
	return ""
}

// portProblem accepts min to 65535 in plain digits.
func portProblem(port string, min int) string {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || int(n) < min {
		return fmt.Sprintf("has a port that is not a number from %d to 65535", min)
	}
	return ""
}

var (
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)
	numberPattern = regexp.MustCompile(`^[0-9.]+$`)
)

func hostProblem(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" && !wordPattern.MatchString(ip.Zone()) {
			return "has an IPv6 zone that is not " + wordAllowed
		}
		return ""
	}
	switch {
	case host == "":
		return "has no host"
	case numberPattern.MatchString(host):
		return "has a host of digits that is no IP address"
	case len(host) > maxHost || !hostPattern.MatchString(host):
		return "has a host that is neither a name nor an IP address (others than ASCII in punycode, IPv6 in brackets)"
	}
	return ""
}
