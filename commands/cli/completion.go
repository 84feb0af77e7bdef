// Completion scripts, made from the table of subcommands and the options of the daemon.

package cli

import (
	"fmt"
	"strings"

	"redlockd/configs"
)

func (a *App) completion(args []string) error {
	switch strings.Join(args, " ") {
	case "bash":
		return a.print(wordsScript() + bashScript)
	case "zsh":
		return a.print("#compdef redlockd\n" + wordsScript() + zshScript)
	case "fish":
		return a.print(fishScript())
	}
	return fmt.Errorf("completion takes one word, allowed: %s; for example: source <(redlockd completion bash)%w", choices(shells), usage{})
}

// settings are the options of the daemon.
func settings() (all []flagRow) {
	for _, row := range configs.Rows() {
		all = append(all, flagRow(row))
	}
	return all
}

// choices are the words that an argument allows; "" for others.
func choices(argument string) string {
	if !strings.Contains(argument, "|") {
		return ""
	}
	return strings.ReplaceAll(argument, "|", " ")
}

// wordsScript is a function of sh that prints what may follow the word $2 in a call of the
// subcommand $1; it prints nothing where a file may follow.
func wordsScript() string {
	var values, calls strings.Builder
	flags := func(options []flagRow) (all string) {
		for _, o := range options {
			all += " --" + o.Name
			if o.Argument != "" {
				fmt.Fprintf(&values, "\t--%s) echo %s; return ;;\n", o.Name, choices(o.Argument))
			}
		}
		return all
	}
	serve := flags(settings())
	fmt.Fprintf(&calls, "\t'') echo %s%s ;;\n\t-*) echo%s ;;\n", strings.Join(words(), " "), serve, serve)
	for _, s := range subcommands {
		follow := choices(s.arguments) + flags(s.options)
		if s.embedded != "" {
			follow += serve
		}
		fmt.Fprintf(&calls, "\t%s) echo %s ;;\n", s.word, follow)
	}
	return "_redlockd_words() {\n\tcase $2 in\n" + values.String() + "\tesac\n\tcase $1 in\n" + calls.String() + "\tesac\n}\n"
}

// In bash an equals sign is a word of its own. What follows -- belongs to the command of lock.
const bashScript = `_redlockd() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do [ "${COMP_WORDS[i]}" = -- ] && return; done
	[ "$COMP_CWORD" -gt 1 ] && command=${COMP_WORDS[1]}
	[ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}
	[ "$word" = = ] && word=
	COMPREPLY=($(compgen -W "$(_redlockd_words "$command" "$before")" -- "$word"))
}
complete -o default -F _redlockd redlockd
`

const zshScript = `_redlockd() {
	local command=; (( CURRENT > 2 )) && command=$words[2]
	(( ${words[(i)--]} > CURRENT )) && compadd -- $(_redlockd_words "$command" "$words[CURRENT-1]") || _files
}
if [ "$funcstack[1]" = _redlockd ]; then _redlockd; else compdef _redlockd redlockd; fi
`

func fishScript() string {
	var script strings.Builder
	line := func(in, what, argument, help string) {
		if words := choices(argument); words != "" {
			what += " -xa '" + words + "'"
		} else if argument != "" {
			what += " -r"
		}
		fmt.Fprintf(&script, "complete -c redlockd -n '%s' %s -d %q\n", in, what, help)
	}
	alone := "not __fish_seen_subcommand_from"
	for _, s := range subcommands {
		line("__fish_use_subcommand", "-xa "+s.word, "", s.help)
		if choices(s.arguments) != "" {
			line("__fish_seen_subcommand_from "+s.word, "", s.arguments, s.help)
		}
		for _, o := range s.options {
			line("__fish_seen_subcommand_from "+s.word, "-l "+o.Name, o.Argument, o.Help)
		}
		if s.embedded == "" {
			alone += " " + s.word
		}
	}
	for _, o := range settings() {
		line(alone, "-l "+o.Name, o.Argument, o.Help)
	}
	return script.String()
}
