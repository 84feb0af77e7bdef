package configs

// flags.go reads the settings on the command line.

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// readFlags defines every option as text, so that the same options decode and check
// flags, variables and the file.
func (l *loader) readFlags(args []string) (layer, error) {
	flags := pflag.NewFlagSet("redlockd", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	for _, option := range l.options {
		if option.list {
			flags.StringArray(option.name, nil, "")
			continue
		}
		flags.String(option.name, "", "")
		if option.argument == "" {
			flags.Lookup(option.name).NoOptDefVal = "true"
		}
	}
	version := flags.Bool("version", false, "")
	if err := flags.Parse(args); err != nil {
		return layer{}, l.flagError(err)
	}
	if *version {
		return layer{}, ErrVersion
	}
	if flags.NArg() > 0 {
		// Not repeated: it may be a master with its password.
		return layer{}, &FieldError{Field: "command line", Problem: "has a word that belongs to no option",
			Advice: "separate the entries of a list by commas without blanks, put a subcommand first, see --help"}
	}
	values := koanf.New(".")
	provider := posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		if f.Name == "version" {
			return "", nil
		}
		return f.Name, posflag.FlagVal(flags, f)
	})
	if err := values.Load(provider, nil); err != nil {
		return layer{}, &FieldError{Field: "command line", Problem: err.Error(), Advice: "see --help"}
	}
	return layer{values, func(option string) string { return "--" + option }}, nil
}

// flagError describes errors of pflag. pflag's own texts are not used: some
// repeat the whole argument, which may be a master with its password.
func (l *loader) flagError(err error) error {
	e := &FieldError{Field: "command line", Problem: "cannot be read", Advice: "write --name=value or --name value, see --help"}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return ErrHelp
	case errors.As(err, &unknown):
		dashes, given := "--", unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			dashes, given = "-", letters
		}
		name, _, _ := strings.Cut(given, "=")
		e.Field, e.Problem = shownName(dashes+name), "is no option"
		e.Advice = fmt.Sprintf("the nearest one is --%s, see --help", nearest(name, append(l.names(), "help", "version")))
	case errors.As(err, &missing):
		e.Field, e.Problem = "--"+missing.GetSpecifiedName(), "has no value"
	}
	return e
}
