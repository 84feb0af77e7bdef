// The manual page in roff, made from the table of subcommands and the options of the daemon.

package cli

import "strings"

// roff escapes a text: hyphens can be copied, no line is a request, and long notations break.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "[,", `\:[,`, "-", `\-`, "…", "...", "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
}

// manual is redlockd(1).
func manual(build string) string {
	var page strings.Builder
	add := func(parts ...string) { page.WriteString(strings.Join(parts, "") + "\n") }
	entry := func(term, text string) { add(".TP\n.B ", roff(strings.TrimSpace(term)), "\n", roff(text), ".") }
	add(".TH REDLOCKD 1 \"\" \"", roff(build), "\"\n.SH NAME\nredlockd \\- quorum locks over independent Redis masters")
	add(".SH SYNOPSIS\n.B redlockd\n[SUBCOMMAND] [OPTION...]\n.SH DESCRIPTION\nWithout a subcommand redlockd serves clients that use RESP, the protocol of Redis.\n.SH SUBCOMMANDS")
	for _, s := range subcommands {
		entry(s.word+" "+s.arguments, s.help)
		for _, o := range s.options {
			add(".RS")
			entry("--"+o.Name+" "+o.Argument, o.Help)
			add(".RE")
		}
	}
	add(".SH COMMANDS UNDER A LOCK\n", roff(strings.TrimSpace(lockNotes)), "\n.SH OPTIONS\nThe daemon and the subcommands for masters take these.")
	for _, o := range settings() {
		entry("--"+o.Name+" "+o.Argument, o.Help)
	}
	add(".SH ENVIRONMENT AND FILE\n", roff("Each option also as REDLOCKD_MAX_TTL=60s, or as max-ttl = \"60s\" in the TOML file that --config names."))
	add("The command line wins over the environment, which wins over the file.\n.SH EXIT STATUS")
	add("0 after an orderly end, 1 for a failure, 2 if the command line, the environment or the file has to change.")
	return page.String()
}
