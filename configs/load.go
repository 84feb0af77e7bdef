package configs

// load.go builds the configuration. The command line wins over the environment, which wins
// over the file, which wins over the defaults. Warnings are about settings that are valid but
// unwise.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"redlockd/redlock/slots"

	"github.com/spf13/pflag"
)

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
	version := flags.BoolP("version", "v", false, "")
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
		e.Advice = "the nearest one is --" + Nearest(name, append(l.names, "help", "version")) + ", see --help"
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
			l.refuse(FieldError{Field: key, Problem: "is no option", Advice: "the nearest one is " + variable(Nearest(name, l.names)) + ", see --help"})
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
			e := FieldError{Field: shownName(key), Source: path, Line: lines[key], Problem: "is no option",
				Advice: "the nearest one is " + Nearest(key, l.names) + ", see --help"}
			if _, table := values[key].(map[string]any); table {
				e.Problem, e.Advice = "is a table", "options stand at the top of the file, outside of tables; only [[group]] is one"
			}
			l.refuse(e)
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

// groupTables returns the tables [[group]] of a file; ok is false if group is the option.
func groupTables(native any) (tables []map[string]any, ok bool) {
	array, _ := native.([]any)
	for _, one := range array {
		table, isTable := one.(map[string]any)
		if !isTable {
			return nil, false
		}
		tables = append(tables, table)
	}
	return tables, len(tables) > 0
}

// readGroups reads the tables of a file. What they are together is checked if each of them is
// readable.
func (l *loader) readGroups(path string, lines map[string]int, tables []map[string]any) {
	var groups []Group
	before := len(l.problems)
	for i, values := range tables {
		name, _ := values["name"].(string)
		g := Group{Name: name, groupTable: groupTable{path, lines, fmt.Sprintf("group.%d.", i+1)}}
		about := func(key string, e FieldError) {
			e.Field, e.Source, e.Line = fmt.Sprintf("%s of [[group]] %d", key, i+1), path, g.line(key)
			l.refuse(e)
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch {
			case slices.Contains(groupKeys, key):
			case slices.Contains(l.names, key):
				about(key, FieldError{Problem: "is no setting of a group", Advice: "write it before the first [[group]]: what follows that line belongs to the group"})
			default:
				about(shownName(key), FieldError{Problem: "is no setting of a group", Advice: "the nearest one is " + Nearest(key, groupKeys)})
			}
		}
		var err error
		if g.Masters, err = tableMasters(values["masters"]); err != nil {
			for _, e := range errorsOf(err) {
				about("masters", fieldError(e))
			}
		}
		ranges, _ := values["slots"].(string)
		if g.Slots, err = slots.Parse(ranges); err != nil {
			about("slots", FieldError{Problem: err.Error(), Advice: `write for example slots = "0-8191"`})
		}
		groups = append(groups, g)
	}
	if len(l.problems) == before {
		l.config.Groups = groups
	}
}

var groupKeys = []string{"name", "masters", "slots"}

// tableMasters reads masters as the option of that name.
func tableMasters(native any) ([]Master, error) {
	if native == nil {
		return nil, nil // checkGroups refuses it
	}
	var c Config
	o := option{value: masterList(&c)}
	text, err := o.fromTOML(native)
	if err == nil {
		err = o.set(text)
	}
	return c.Masters, err
}

// applyGroups puts the tables in the place of the options that they replace.
func (l *loader) applyGroups() {
	if len(l.config.Groups) == 0 {
		return
	}
	for _, name := range []string{"masters", "masters-file", "embedded"} {
		if g := l.found[name]; g.source != "" {
			l.refuse(FieldError{Field: name, Source: g.source, Line: g.line, Problem: "cannot be combined with [[group]] tables in " + l.found["config"].text,
				Advice: "leave it out; the masters of several groups are named in the file alone"})
		}
	}
	l.config.Masters, l.config.Embedded = nil, 0
	if l.found["group"].source == "" {
		l.config.Group = ""
	}
}

// Validate returns all problems as joined FieldErrors, or nil.
func (c *Config) Validate() error { return errors.Join(check(c, options(c), nil)...) }

func check(c *Config, options []option, found map[string]given) (problems []error) {
	for _, o := range options {
		shown := o.show()
		if shown == "" || hasBlank(shown) {
			shown = strconv.Quote(shown)
		}
		problems = append(problems, o.explain(o.check(c), shown, found[o.name])...)
	}
	return append(problems, checkGroups(c)...)
}

const (
	worldReadable = 0o004 // the permission bit that lets every user of the machine read
	worldBits     = 0o007 // all that every user of the machine is allowed
)

func (l *loader) warn() {
	c := &l.config
	warn := func(unwise bool, format string, args ...any) {
		if unwise {
			c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
		}
	}
	masters, password := l.found["masters"].source, l.found["requirepass"].source
	secret := slices.ContainsFunc(c.allMasters(), func(m Master) bool { return m.Password != "" })
	socket := slices.ContainsFunc(c.Listen, func(address string) bool { return strings.HasPrefix(address, "unix:") })
	warn(secret && masters == "--masters", "--masters holds a password, which every user of this machine can read in the list of processes: use --masters-file, or REDLOCKD_MASTERS")
	warn(secret && (masters == c.File || len(c.Groups) > 0) && readableByAll(c.File), "%[1]s holds a password and every user of this machine can read it: chmod o-r %[1]s", c.File)
	warn(secret && readableByAll(c.MastersFile), "%[1]s holds a password and every user of this machine can read it: chmod 600 %[1]s", c.MastersFile)
	warn(socket && c.UnixMode&worldBits != 0, "unix-mode = %04o: every user of this machine can connect to the socket; use 0770 and a group", uint32(c.UnixMode))
	warn(c.CompatTest, "compat-test = true: any client may overwrite any lock and empty the masters, and locks need no expiry: never in production")
	warn(password == "--requirepass", "--requirepass is a password, which every user of this machine can read in the list of processes: use REDLOCKD_REQUIREPASS or a file")
	warn(password == c.File && readableByAll(c.File), "%[1]s holds requirepass and every user of this machine can read it: chmod o-r %[1]s", c.File)
	warn(readableByAll(c.UsersFile), "%[1]s holds digests of passwords and every user of this machine can read it: chmod o-r %[1]s", c.UsersFile)
	warn(readableByAll(c.TLSKey), "%[1]s is the private key of tls-cert and every user of this machine can read it: chmod 600 %[1]s", c.TLSKey)
	warn(c.ProtectedMode == "off" && c.RequirePass == "" && len(c.Users) == 0, "protected-mode = off without requirepass and users: every client that reaches this port may do everything")
	warn(c.RestartGuard == GuardOff, "restart-guard = off: after a master restarts without its memory, two clients may hold one lock")
	warn(c.IDsDurability == IDsVolatile, "ids-durability = off: after a crash of masters, ids may be given a second time")
	if c.Bootstrap { // with its source, so that the operator can remove it
		c.BootstrapWarning = fmt.Sprintf("bootstrap = true (from %s) stays in force: should all masters lose their memory at once, locks still held could be granted again; take it out and use `redlockd bootstrap` once instead", l.found["bootstrap"].source)
		c.Warnings = append(c.Warnings, c.BootstrapWarning)
	}
}

func readableByAll(path string) bool {
	info, err := os.Stat(path) // fails for "", the path of no file
	return err == nil && info.Mode().Perm()&worldReadable != 0
}
