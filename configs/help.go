package configs

// help.go builds the text of --help: one screen of 24 lines and 100 columns.

import (
	"fmt"
	"strings"
)

// Help returns the text of --help, made from the same options that Load reads.
func Help() string {
	var text strings.Builder
	text.WriteString("redlockd [OPTION…]: quorum locks over independent Redis masters, for clients that use RESP\n")
	text.WriteString("redlockd bootstrap [--fence-above N]|reconfigure [--force]|check|quarantine|lock|hash-password|help\n")
	defaults := Default()
	for _, group := range groups() {
		title, row := group.title, helpRow{}
		for _, option := range group.options {
			if option.help != "" && len(row.flags) > 0 {
				text.WriteString(row.line(title))
				title, row = "", helpRow{}
			}
			row.add(&option, &defaults)
		}
		if group.title == "Daemon" {
			row.flags = append(row.flags, "--version", "--help")
		}
		text.WriteString(row.line(title))
	}
	text.WriteString("Each also as REDLOCKD_MAX_TTL=60s, or max-ttl = \"60s\" in the file. Flags win, then environment.\n")
	return text.String()
}

// helpRow is one line: an option, and the related options after it that have no help text
// of their own.
type helpRow struct {
	flags, help, defaults []string
}

func (r *helpRow) add(o *option, defaults *Config) {
	flag := "--" + o.name
	if o.argument != "" {
		flag += " " + o.argument
	}
	r.flags = append(r.flags, flag)
	if o.help != "" {
		r.help = append(r.help, o.help)
	}
	if value := o.show(defaults); value != "" && o.argument != "" {
		r.defaults = append(r.defaults, "["+value+"]")
	}
}

func (r *helpRow) line(title string) string {
	words := append(r.help, r.defaults...)
	return fmt.Sprintf("%-8s %-34s %s\n", title, strings.Join(r.flags, " "), strings.Join(words, " "))
}
