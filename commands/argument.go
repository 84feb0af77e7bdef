// argument describes how a command is written. One description serves the reader of
// options (args.go), the syntax line in errors, the README table and COMMAND DOCS, from
// which redis-cli completes and hints.

package commands

import "strings"

// Kinds of arguments, in the words of COMMAND DOCS.
const (
	kindKey     = "key"
	kindString  = "string"
	kindInteger = "integer"
	kindWord    = "pure-token"
	kindOneOf   = "oneof"
	kindBlock   = "block"
)

// argument describes one argument, or a group of them.
type argument struct {
	name     string
	kind     string
	word     string     // the option word in front, or all there is of a kindWord
	optional bool       // may be left out
	multiple bool       // may be repeated
	parts    []argument // of kindOneOf and kindBlock
}

func keyArgument() argument                { return argument{name: "key", kind: kindKey} }
func text(name string) argument            { return argument{name: name, kind: kindString} }
func integer(name string) argument         { return argument{name: name, kind: kindInteger} }
func optional(a argument) argument         { a.optional = true; return a }
func multiple(a argument) argument         { a.multiple = true; return a }
func option(w string, a argument) argument { a.word = w; return a }

func word(w string) argument {
	return argument{name: strings.ToLower(w), kind: kindWord, word: w}
}

func oneOf(name string, parts ...argument) argument {
	return argument{name: name, kind: kindOneOf, parts: parts}
}

func block(name string, parts ...argument) argument {
	return argument{name: name, kind: kindBlock, parts: parts}
}

// optionsOf are the option words of a command, at most 32, in any order behind its
// positional arguments.
func optionsOf(args []argument) []argument {
	var options []argument
	for _, a := range args {
		if a.word != "" {
			options = append(options, a)
		}
		options = append(options, optionsOf(a.parts)...)
	}
	return options
}

// syntaxOf writes a command the way its documentation shows it, for example
// "DLOCK key ttl [TOKEN token] [META text]". name is "dlock" or "client|id".
func syntaxOf(name string, args []argument) string {
	head := strings.ToUpper(strings.ReplaceAll(name, "|", " "))
	if len(args) == 0 {
		return head
	}
	return head + " " + joinSyntax(args, " ")
}

func joinSyntax(args []argument, separator string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.syntax()
	}
	return strings.Join(words, separator)
}

// syntax writes one argument: option word, value, repetition, brackets.
func (a argument) syntax() string {
	body := a.name
	switch a.kind {
	case kindWord:
		body = a.word
	case kindOneOf:
		body = joinSyntax(a.parts, " | ")
		if !a.optional {
			body = "<" + body + ">"
		}
	case kindBlock:
		body = joinSyntax(a.parts, " ")
	}
	if a.word != "" && a.kind != kindWord {
		body = a.word + " " + body
	}
	if a.multiple {
		body += " [" + body + " ...]"
	}
	if a.optional {
		body = "[" + body + "]"
	}
	return body
}
