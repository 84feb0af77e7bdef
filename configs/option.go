package configs

// option.go contains option, which is over one field of a Config, and the kinds of values.
// The command line, the environment and the file call set, with the entries of a list
// joined. Errors of set and check are ends of sentences ("is not …") without the value:
// explain adds it, unless it may hold a password.

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// option is one row of the table in options.go.
type option struct {
	name   string
	preset string // the default, as set reads it; "" is the zero value
	help   string // "" = it shares the line of the option before
	advice string
	value
}

// value reads, shows and checks one field of a Config.
type value struct {
	argument  string // the name of the value in --help, "" for a switch
	allowed   string
	notation  string         // follows the advice: how a value is written
	wanted    string         // what a TOML value of another kind is not
	native    []reflect.Kind // the TOML values beside text that set reads
	separator string         // joins the entries of a list; "" = no list
	secret    bool           // the value may hold a password: never shown as it was given
	set       func(text string) error
	show      func() string // the present value, passwords hidden
	check     func(*Config) error
}

// given is the value of an option as a source has it.
type given struct {
	text, shown string // shown is text as errors quote it
	err         error  // a TOML value of another kind
	source      string // "--max-ttl", "REDLOCKD_MAX_TTL" or the file's path
	line        int    // of the file, 0 = unknown
}

// fromTOML converts a TOML value to the text that set reads.
func (o *option) fromTOML(native any) (string, error) {
	kind := reflect.ValueOf(native).Kind()
	array, isArray := native.([]any)
	switch {
	case kind == reflect.String || slices.Contains(o.native, kind):
		return fmt.Sprint(native), nil
	case !isArray || o.separator == "":
		return "", fmt.Errorf("is %s and %s", kindOf(native), o.wanted)
	}
	entries := make([]string, len(array))
	for i, entry := range array {
		var ok bool
		if entries[i], ok = entry.(string); !ok {
			return "", fmt.Errorf("holds %s as entry %d and not text in quotes", kindOf(entry), i+1)
		}
	}
	return strings.Join(entries, o.separator), nil
}

var kindNames = map[reflect.Kind]string{
	reflect.String: "text", reflect.Bool: "a truth value", reflect.Int64: "a whole number",
	reflect.Float64: "a number with a fraction", reflect.Slice: "an array", reflect.Map: "a table",
}

// kindOf names a TOML value for people.
func kindOf(native any) string {
	return cmp.Or(kindNames[reflect.ValueOf(native).Kind()], "a date or time")
}

// explain completes the errors of set and check for operators.
func (o *option) explain(err error, shown string, from given) (explained []error) {
	if err == nil {
		return nil
	}
	for _, err := range errorsOf(err) {
		e := fieldError(err)
		if e.Value == "" && !o.secret {
			e.Value = shown
		}
		e.Field, e.Source, e.Line, e.Allowed = o.name, from.source, from.line, o.allowed
		e.Advice = cmp.Or(e.Advice, o.advice+o.notation)
		explained = append(explained, &e)
	}
	return explained
}

// of is a value that parse reads and show shows, without a check.
func of[T any](field *T, argument, wanted string, parse func(string) (T, error), show func(T) string) value {
	return value{
		argument: argument, wanted: wanted,
		set: func(text string) error {
			parsed, err := parse(text)
			if err == nil {
				*field = parsed
			}
			return err
		},
		show:  func() string { return show(*field) },
		check: func(*Config) error { return nil },
	}
}

func (v value) checked(check func(*Config) error) value { v.check = check; return v }
func (v value) allows(allowed string) value             { v.allowed = allowed; return v }
func (v value) hidden() value                           { v.secret = true; return v }

func duration(field *time.Duration, min, max time.Duration) value {
	v := of(field, "TIME", "not a duration", parseDuration, showDuration)
	v.native, v.notation = []reflect.Kind{reflect.Int64}, ` (write "100ms" or "60s")`
	return v.allows(showDuration(min) + " to " + showDuration(max)).checked(func(*Config) error {
		return cmp.Or(refuse(*field < min, "is too short"), refuse(*field > max, "is too long"),
			refuse(*field%time.Millisecond != 0, "is not a whole number of milliseconds"))
	})
}

// holdTime reads the longest time for which one holder keeps a lock; 0 = as long as it extends it.
func holdTime(field *time.Duration) value {
	v := duration(field, 0, 365*24*time.Hour)
	bounds := v.check
	return v.checked(func(c *Config) error {
		return cmp.Or(refuse(*field > 0 && *field < 10*time.Millisecond, "is too short: 10ms, or 0s for no limit"), bounds(c))
	})
}

// parseDuration reads Go's notation ("100ms", "1m30s"). It refuses a number without a unit,
// which is seconds in some commands of Redis and milliseconds in others.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	_, err = time.ParseDuration(text + "ns")
	return 0, cmp.Or(refuse(err == nil, "has no unit", fmt.Sprintf("write %[1]ss or %[1]sms, in a file in quotes", text)), errors.New("is not a duration"))
}

var zeros = regexp.MustCompile(`([hm])(0m)?0s$`)

// showDuration formats 60s as 1m and 24h as 24h, where String appends zeros.
func showDuration(d time.Duration) string { return zeros.ReplaceAllString(d.String(), "$1") }

func integer(field *int, min, max int) value {
	v := of(field, "N", "not a whole number", parseInt, strconv.Itoa)
	v.native = []reflect.Kind{reflect.Int64}
	return v.allows(fmt.Sprintf("%d to %d", min, max)).checked(func(*Config) error {
		return cmp.Or(refuse(*field < min, "is too small"), refuse(*field > max, "is too large"))
	})
}

// parseInt reads a decimal integer without blanks, separators or a sign +.
func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	return n, refuse(err != nil || text[0] == '+', "is not a whole number")
}

// share is a fraction.
func share(field *float64) value {
	v := of(field, "SHARE", "not a number", func(text string) (float64, error) {
		share, err := strconv.ParseFloat(text, 64)
		return share, refuse(err != nil, "is not a number")
	}, func(share float64) string { return strconv.FormatFloat(share, 'g', -1, 64) })
	v.native = []reflect.Kind{reflect.Int64, reflect.Float64}
	return v.allows("0 to 1").checked(func(*Config) error { return refuse(!(*field >= 0 && *field <= 1), "is no share") })
}

func text[T ~string](field *T, argument, allowed string) value {
	parse := func(text string) (T, error) { return T(text), nil }
	return of(field, argument, "not text in quotes", parse, func(t T) string { return fmt.Sprint(t) }).allows(allowed)
}

func choice(field *string, words ...string) value {
	return text(field, strings.Join(words, "|"), strings.Join(words, ", ")).checked(func(*Config) error {
		return refuse(!slices.Contains(words, *field), "is none of its words")
	})
}

func truth(field *bool) value {
	v := of(field, "", "neither true nor false", parseTruth, strconv.FormatBool)
	v.native = []reflect.Kind{reflect.Bool}
	return v.allows("true, false")
}

func parseTruth(text string) (bool, error) {
	return text == "true", refuse(text != "true" && text != "false", "is neither true nor false")
}

// list is several texts in one, which split takes apart.
func list(field *[]string, argument, separator, allowed string, split func(string) []string) value {
	v := of(field, argument, "neither text nor an array of texts",
		func(text string) ([]string, error) { return split(text), nil },
		func(entries []string) string { return strings.Join(entries, separator) })
	v.separator = separator
	return v.allows(allowed)
}
