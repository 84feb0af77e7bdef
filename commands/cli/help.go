// The help, made from the table of subcommands and the options of the daemon.

package cli

import (
	"fmt"
	"strings"

	"redlockd/configs"
)

// help returns the help of one subcommand, or of the program (wordServe, wordHelp).
func help(word string) string {
	var text strings.Builder
	line := func(indent, name, help string) {
		text.WriteString(strings.TrimRight(fmt.Sprintf("%s%-*s %s", indent, 39-len(indent), name, help), " ") + "\n")
	}
	for _, s := range subcommands {
		if s.word != word || word == wordHelp {
			continue
		}
		options := "[OPTION...]"
		if s.embedded == "" && s.options == nil {
			options = ""
		}
		fmt.Fprintf(&text, "redlockd %s\n%s%s.\n", strings.Join(strings.Fields(s.word+" "+s.arguments+" "+options), " "), strings.ToUpper(s.help[:1]), s.help[1:])
		for _, o := range s.options {
			line("  ", strings.TrimSpace("--"+o.Name+" "+o.Argument), o.Help)
		}
		if s.embedded != "" {
			text.WriteString("It also takes the options of the daemon, of which --masters or --config is needed; see redlockd help.\n")
		}
		return text.String()
	}
	text.WriteString("redlockd [OPTION...] serves locks to clients of the Redis protocol\nredlockd SUBCOMMAND [OPTION...]\n\nSubcommands\n")
	for _, s := range subcommands {
		line("  ", s.word, strings.SplitN(s.help, ";", 2)[0])
	}
	return text.String() + configs.Help()
}
