package configs

// load.go builds the configuration from three layers, the stronger over the weaker: the
// file, the environment, the command line. Each layer is read and searched for unknown
// names by itself, so that every error can contain the source of the value; koanf merges
// them.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// layer is one source: its values by option, and the name of one in an error.
type layer struct {
	values *koanf.Koanf
	source func(option string) string
}

// Load reads the command line (without the program's name and a subcommand),
// the environment ("NAME=value", as os.Environ has it) and the file that either
// of them names. The errors are ErrHelp, ErrVersion, or all invalid settings as joined
// FieldErrors, each of which is an ErrInvalid.
func Load(args, environ []string) (Config, error) {
	l := loader{config: Default(), options: allOptions()}
	flags, err := l.readFlags(args)
	if err != nil {
		return Config{}, err
	}
	variables := l.readEnviron(environ)
	l.layers = []layer{flags, variables}
	if content, ok := l.readFile(); ok {
		l.layers = append(l.layers, content)
	}
	l.apply()
	if len(l.problems) > 0 {
		return Config{}, join(l.problems)
	}
	l.config.BootstrapWarning = l.bootstrapWarning()
	l.config.Warnings = l.warnings()
	return l.config, nil
}

// loader is one run of Load.
type loader struct {
	options  []option
	layers   []layer // strongest first
	config   Config
	problems []*FieldError
}

func allOptions() []option {
	var all []option
	for _, group := range groups() {
		all = append(all, group.options...)
	}
	return all
}

func (l *loader) names() []string {
	names := make([]string, len(l.options))
	for i, option := range l.options {
		names[i] = option.name
	}
	return names
}

// apply merges the layers into the configuration and checks the result.
func (l *loader) apply() {
	merged := koanf.New("\x00")
	for _, layer := range slices.Backward(l.layers) {
		if err := merged.Merge(layer.values); err != nil {
			l.problems = append(l.problems, &FieldError{Field: "config", Problem: err.Error()})
		}
	}
	for _, option := range l.options {
		if merged.Exists(option.name) {
			l.problems = append(l.problems, l.set(option, merged.Get(option.name))...)
		}
	}
	if len(l.config.Masters) > 0 && !merged.Exists("embedded") {
		l.config.Embedded = 0
	}
	// Settings with an invalid value have kept their default, which is valid.
	l.problems = append(l.problems, check(&l.config, l.options, l.source)...)
}

// set stores one value. An empty one is rejected except where it has a
// meaning: a variable that expanded to nothing must not start a daemon on
// embedded masters.
func (l *loader) set(o option, value any) []*FieldError {
	given := fmt.Sprint(value)
	if text, ok := value.(string); ok {
		given = fmt.Sprintf("%q", text)
	}
	var found []problem
	if list, err := decodeList(value); err == nil && strings.Join(list, "") == "" && o.name != "key-prefix" {
		found = []problem{{text: "is empty", advice: "give a value or leave it out"}}
	} else {
		found = o.set(&l.config, value)
	}
	errs := make([]*FieldError, len(found))
	for i, p := range found {
		errs[i] = o.fieldError(p, given, l.source(o.name))
	}
	return errs
}

// source returns the name of the strongest layer that sets an option, "" if none does.
func (l *loader) source(option string) string {
	for _, layer := range l.layers {
		if layer.values.Exists(option) {
			return layer.source(option)
		}
	}
	return ""
}
