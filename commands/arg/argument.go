// Spec describes how a command is written. One description serves the reader of
// options (args.go), the syntax line in errors, the README table and COMMAND DOCS, from
// which redis-cli completes and hints.

package arg

import "strings"

// Kinds of arguments, in the words of COMMAND DOCS.
const (
	KindKey     = "key"
	kindString  = "string"
	kindInteger = "integer"
	KindWord    = "pure-token"
	KindOneOf   = "oneof"
	KindBlock   = "block"
)

type Spec struct {
	Name     string
	Kind     string
	Word     string // the option word in front, or all there is of a KindWord
	Optional bool   // may be left out
	Multiple bool   // may be repeated
	Within   bool   // of KindKey: the name is a part of the word, or not the first word; the handler checks whether the user may use it
	Parts    []Spec // of KindOneOf and KindBlock
}

func Key() Spec                    { return Spec{Name: "key", Kind: KindKey} }
func KeyWithin(name string) Spec   { return Spec{Name: name, Kind: KindKey, Within: true} }
func Text(name string) Spec        { return Spec{Name: name, Kind: kindString} }
func Integer(name string) Spec     { return Spec{Name: name, Kind: kindInteger} }
func Optional(a Spec) Spec         { a.Optional = true; return a }
func Multiple(a Spec) Spec         { a.Multiple = true; return a }
func Option(w string, a Spec) Spec { a.Word = w; return a }

func Word(w string) Spec {
	return Spec{Name: strings.ToLower(w), Kind: KindWord, Word: w}
}

func OneOf(name string, parts ...Spec) Spec {
	return Spec{Name: name, Kind: KindOneOf, Parts: parts}
}

func Block(name string, parts ...Spec) Spec {
	return Spec{Name: name, Kind: KindBlock, Parts: parts}
}

// Options are the option words of a command, at most 32, in any order behind its
// positional arguments.
func Options(args []Spec) []Spec {
	var options []Spec
	for _, a := range args {
		if a.Word != "" {
			options = append(options, a)
		}
		options = append(options, Options(a.Parts)...)
	}
	return options
}

// Syntax writes a command the way its documentation shows it, for example
// "DLOCK key ttl [TOKEN token] [META text]". name is "dlock" or "client|id".
func Syntax(name string, args []Spec) string {
	head := strings.ToUpper(strings.ReplaceAll(name, "|", " "))
	if len(args) == 0 {
		return head
	}
	return head + " " + joinSyntax(args, " ")
}

func joinSyntax(args []Spec, separator string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.syntax()
	}
	return strings.Join(words, separator)
}

// syntax writes one argument: option word, value, repetition, brackets.
func (s Spec) syntax() string {
	body := s.Name
	switch s.Kind {
	case KindWord:
		body = s.Word
	case KindOneOf:
		body = joinSyntax(s.Parts, " | ")
		if !s.Optional {
			body = "<" + body + ">"
		}
	case KindBlock:
		body = joinSyntax(s.Parts, " ")
	}
	if s.Word != "" && s.Kind != KindWord {
		body = s.Word + " " + body
	}
	if s.Multiple {
		body += " [" + body + " ...]"
	}
	if s.Optional {
		body = "[" + body + "]"
	}
	return body
}
