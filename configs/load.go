package configs

// load.go builds the configuration. The command line wins over the environment, which wins
// over the file, which wins over the defaults.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"
)

// given is the value of an option as a source has it.
type given struct {
	text, shown string // shown is text as errors quote it
	err         error  // a TOML value of another kind
	source      string // "--max-ttl", "REDLOCKD_MAX_TTL" or the file's path
	line        int    // of the file, 0 = unknown
}

// loader is one run of Load.
type loader struct {
	config   Config
	options  []option
	names    []string         // of options
	found    map[string]given // by option: what the strongest source has
	problems []error
}

// Load reads the command line (without the program's name and a subcommand),
// the environment ("NAME=value", as os.Environ has it) and the file that either
// of them names. The errors are ErrHelp, ErrVersion, or all invalid settings as joined
// FieldErrors, each of which is an ErrInvalid.
func Load(args, environ []string) (Config, error) {
	l := loader{config: Default(), found: make(map[string]given)}
	l.options = options(&l.config)
	for _, o := range l.options {
		l.names = append(l.names, o.name)
	}
	if err := l.readFlags(args); err != nil {
		return Config{}, err
	}
	l.readEnviron(environ)
	l.readFile()
	l.apply()
	if len(l.problems) > 0 {
		return Config{}, errors.Join(l.problems...)
	}
	l.warn()
	return l.config, nil
}

// apply sets and checks all options.
func (l *loader) apply() {
	for _, o := range l.options {
		g, ok := l.found[o.name]
		// A variable that expanded to nothing must not start a daemon on embedded masters.
		empty := ok && strings.Trim(g.text, o.separator) == "" && o.name != "key-prefix"
		err := cmp.Or(g.err, refuse(empty, "is empty", "give a value or leave it out"))
		if ok && err == nil {
			err = o.set(g.text)
		}
		l.problems = append(l.problems, o.explain(err, g.shown, g)...)
	}
	if l.found["embedded"].source == "" && len(l.config.Masters) > 0 {
		l.config.Embedded = 0
	}
	l.applyGroups()
	// Options with an invalid value have kept their default, which is valid.
	l.problems = append(l.problems, check(&l.config, l.options, l.found)...)
}

// add keeps a value unless a stronger source, which is read before, has one.
func (l *loader) add(name string, g given) { l.found[name] = cmp.Or(l.found[name], g) }

func (l *loader) refuse(e FieldError) { l.problems = append(l.problems, &e) }

// readFlags keeps all entries of a list that is given repeatedly, and the last of other values.
func (l *loader) readFlags(args []string) error {
	flags := pflag.NewFlagSet("redlockd", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	for _, o := range l.options {
		add := func(text string) error {
			if before, ok := l.found[o.name]; ok && o.separator != "" {
				text = before.text + o.separator + text
			}
			l.found[o.name] = given{text, strconv.Quote(text), nil, "--" + o.name, 0}
			return nil
		}
		if o.argument == "" {
			flags.BoolFunc(o.name, "", add)
		} else {
			flags.Func(o.name, "", add)
		}
	}
	version := flags.Bool("version", false, "")
	err := flags.Parse(args)
	switch {
	case err != nil:
		return l.flagError(err)
	case *version:
		return ErrVersion
	case flags.NArg() > 0:
		// Not repeated: it may be a master with its password.
		return &FieldError{Field: "command line", Problem: "has a word that belongs to no option",
			Advice: "separate the entries of a list by commas without blanks, put a subcommand first, see --help"}
	}
	return nil
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
	case errors.As(err, &missing):
		e.Field, e.Problem = "--"+missing.GetSpecifiedName(), "has no value"
	case errors.As(err, &unknown):
		dashes, word := "--", unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			dashes, word = "-", letters
		}
		name, _, _ := strings.Cut(word, "=")
		e.Field, e.Problem = shownName(dashes+name), "is no option"
		e.Advice = "the nearest one is --" + nearest(name, append(l.names, "help", "version")) + ", see --help"
	}
	return e
}

// variable returns the name of an option's variable: max-ttl is REDLOCKD_MAX_TTL.
func variable(option string) string {
	return "REDLOCKD_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

var (
	// ownPattern matches every variable with the program's name, with or without the D: a
	// misspelt setting must not go unnoticed.
	ownPattern = regexp.MustCompile(`^REDLOCKD?_?`)
	// clusterPattern matches variables that Kubernetes sets in every container for a Service
	// called redlockd, redlock or redlockd-something (REDLOCKD_SERVICE_HOST,
	// REDLOCKD_PORT_7379_TCP_ADDR …), and Docker's links likewise. Without this
	// exception a daemon would refuse to start beside its own Service.
	clusterPattern = regexp.MustCompile(`^REDLOCK([A-Z0-9_]*_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)
)

func (l *loader) readEnviron(environ []string) {
	for _, entry := range environ {
		key, text, _ := strings.Cut(entry, "=")
		own := ownPattern.FindString(key)
		name := strings.ToLower(strings.ReplaceAll(key[len(own):], "_", "-"))
		switch {
		case own == "" || clusterPattern.MatchString(key):
		case slices.Contains(l.names, name) && key == variable(name):
			l.add(name, given{text, strconv.Quote(text), nil, key, 0})
		default:
			l.refuse(FieldError{Field: key, Problem: "is no option", Advice: "the nearest one is " + variable(nearest(name, l.names)) + ", see --help"})
		}
	}
}

// readFile reads the file that the command line or the environment names, if any.
func (l *loader) readFile() {
	named := l.found["config"]
	path := named.text
	if path == "" {
		return // apply refuses an empty name
	}
	values, lines, err := readTOML(path)
	if err != nil {
		l.refuse(FieldError{Field: "config", Value: named.shown, Source: named.source, Problem: err.Error(),
			Allowed: tomlAllowed, Advice: "name a readable one, configs/redlockd.toml is an example"})
	}
	if tables, ok := groupTables(values["group"]); ok {
		l.readGroups(path, lines, tables)
		delete(values, "group")
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch i := slices.Index(l.names, key); {
		case key == "config":
			l.refuse(FieldError{Field: key, Source: path, Line: lines[key], Problem: "cannot be set in a file", Advice: "one file is read; leave it out"})
		case i < 0:
			l.refuse(FieldError{Field: shownName(key), Source: path, Line: lines[key], Problem: "is no option",
				Advice: "the nearest one is " + nearest(key, l.names) + ", see --help"})
		default:
			text, err := l.options[i].fromTOML(values[key])
			shown := fmt.Sprint(values[key])
			if _, ok := values[key].(string); ok {
				shown = strconv.Quote(text)
			}
			l.add(key, given{text, shown, err, path, lines[key]})
		}
	}
}

const (
	maxFileSize = 1 << 20 // the annotated example has 9 kB
	tomlAllowed = "path of a TOML file of at most 1 MiB"
)

// readSmallFile reads a file of at most maxFileSize bytes. The error does not repeat the path.
func readSmallFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxFileSize {
		return nil, errors.New("too large")
	}
	content, err := os.ReadFile(path)
	var bare *fs.PathError
	if errors.As(err, &bare) {
		err = bare.Err
	}
	return content, err
}

// readTOML returns the values in a file, and the line of each key; dots join the keys of
// tables.
func readTOML(path string) (values map[string]any, lines map[string]int, err error) {
	content, err := readSmallFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot be read (%w)", err)
	}
	err = toml.Unmarshal(content, &values)
	var place *toml.DecodeError
	switch {
	case errors.As(err, &place):
		row, column := place.Position()
		return nil, nil, fmt.Errorf("is not TOML in line %d, column %d (%w)", row, column, err)
	case err != nil:
		return nil, nil, fmt.Errorf("cannot be used (%w)", err)
	}
	return values, keyLines(content), nil
}

// keyLines is empty for keys of inline tables, which no option has. Those of the first table
// [[group]] begin with "group.1.", and that is the key of the table itself.
func keyLines(content []byte) map[string]int {
	lines, arrays := make(map[string]int), make(map[string]int)
	var parser unstable.Parser
	parser.Reset(content)
	table, line, counted := "", 1, 0
	for parser.NextExpression() {
		key, expression := table, parser.Expression()
		if expression.Kind != unstable.KeyValue {
			key = ""
		}
		for part := expression.Key(); part.Next(); key += "." {
			offset := int(part.Node().Raw.Offset)
			line, counted = line+bytes.Count(content[counted:offset], []byte("\n")), offset
			if key += string(part.Node().Data); lines[key] == 0 {
				lines[key] = line
			}
		}
		switch expression.Kind {
		case unstable.Table:
			table = key
		case unstable.ArrayTable:
			arrays[key]++
			table = key + strconv.Itoa(arrays[key]) + "."
			lines[table] = line
		}
	}
	return lines
}
