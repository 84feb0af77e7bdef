// What does --help say? One screen of 24 lines and 100 columns.
package configs

import (
	"fmt"
	"strings"
)

// Help is the text of --help, made from the same rows that Load reads.
func Help() string {
	var text strings.Builder
	text.WriteString("redlockd [OPTION…]: quorum locks over independent Redis masters, for clients that speak RESP\n")
	text.WriteString("redlockd bootstrap [--force] --masters LIST: say once that a group is new; redlockd version | help\n")
	defaults := Default()
	for _, group := range groups() {
		title := group.title
		for _, option := range group.options {
			flag := "--" + option.name
			if option.argument != "" {
				flag += " " + option.argument
			}
			line := fmt.Sprintf("%-8s %-34s %s", title, flag, option.help)
			if value := option.show(&defaults); value != "" && option.argument != "" {
				line += " [" + value + "]"
			}
			text.WriteString(line + "\n")
			title = ""
		}
	}
	fmt.Fprintf(&text, "%-8s %s\n", "", "--version, --help")
	text.WriteString("Each also as REDLOCKD_MAX_TTL=60s, or max-ttl = \"60s\" in the file. Flags win, then environment.\n")
	return text.String()
}
