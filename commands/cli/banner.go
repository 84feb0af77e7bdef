// Banner is what the daemon prints at its start.

package cli

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"strings"

	"redlockd/configs"
)

// Banner prints where the daemon listens and how many masters must agree. For
// embedded masters it also prints their limits, and what to type next.
func Banner(out io.Writer, config configs.Config, addresses []string, quorum func(masters int) int) {
	fmt.Fprintf(out, "redlockd listens on %s\n", strings.Join(addresses, ", "))
	if config.Embedded == 0 {
		for _, one := range config.Each() {
			names := make([]string, len(one.Masters))
			for i, master := range one.Masters {
				names[i] = master.String()
			}
			if len(config.Groups) > 0 {
				fmt.Fprintf(out, "group %s, slots %s: ", one.Group, cmp.Or(one.Slots, "all"))
			}
			fmt.Fprintf(out, "%d masters, %d must agree: %s\n", len(names), quorum(len(names)), strings.Join(names, ", "))
		}
		return
	}
	fmt.Fprintf(out, "%d embedded masters run in this process, for trying out only: locks, counters and work\n", config.Embedded)
	fmt.Fprintf(out, "end with it; name masters that outlive it with --masters. Type next:\n\n")
	fmt.Fprintf(out, "    %s\n", redisCLI(addresses[0]))
	fmt.Fprintf(out, "    DLOCK invoices 30000\n")
	fmt.Fprintf(out, "    DUNLOCK invoices TOKEN-from-the-reply\n\n")
}

// redisCLI is the command that reaches an address from this machine.
func redisCLI(address string) string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "redis-cli -s " + path
	}
	if plain, ok := strings.CutPrefix(address, "tls:"); ok {
		return strings.Replace(redisCLI(plain), "redis-cli", "redis-cli --tls --cacert CA-FILE", 1)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "redis-cli"
	}
	ip := net.ParseIP(host)
	if host == "" || host == "localhost" || ip.Equal(net.IPv4(127, 0, 0, 1)) || ip.IsUnspecified() {
		return "redis-cli -p " + port
	}
	return "redis-cli -h " + host + " -p " + port
}
