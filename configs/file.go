package configs

// file.go reads the settings in the file.

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

const maxFileSize = 1 << 20 // 1 MiB; the annotated example has 5 kB

// readFile reads the file that a stronger layer names, if any.
func (l *loader) readFile() (layer, bool) {
	named := slices.IndexFunc(l.layers, func(layer layer) bool { return layer.values.Exists("config") })
	if named < 0 {
		return layer{}, false
	}
	path := l.layers[named].values.String("config")
	if path == "" {
		return layer{}, false // apply rejects it, as every empty value
	}
	values := koanf.New("\x00") // no name holds it: keys with dots stay one key
	if e := loadFile(values, path); e != nil {
		e.Field, e.Value, e.Source = "config", strconv.Quote(path), l.source("config")
		l.problems = append(l.problems, e)
		return layer{}, false
	}
	for key := range values.Raw() {
		switch {
		case key == "config":
			l.problems = append(l.problems, &FieldError{Field: key, Source: path, Problem: "cannot be set in a file", Advice: "one file is read; leave it out"})
		case !slices.Contains(l.names(), key):
			l.problems = append(l.problems, &FieldError{Field: shownName(key), Source: path, Problem: "is no option",
				Advice: "the nearest one is " + nearest(key, l.names()) + ", see --help"})
		}
	}
	return layer{values, func(string) string { return path }}, true
}

func loadFile(values *koanf.Koanf, path string) *FieldError {
	e := &FieldError{Allowed: "path of a TOML file of at most 1 MiB", Advice: "name a readable one, configs/redlockd.toml is an example"}
	if info, err := os.Stat(path); err == nil && info.Size() > maxFileSize {
		e.Problem = "is too large"
		return e
	}
	err := values.Load(file.Provider(path), toml.Parser())
	var place interface{ Position() (row, column int) }
	var access *os.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &place):
		row, column := place.Position()
		e.Problem = fmt.Sprintf("is not TOML in line %d, column %d (%s)", row, column, err)
	case errors.As(err, &access):
		e.Problem = "cannot be read (" + access.Err.Error() + ")"
	default:
		e.Problem = "cannot be used (" + err.Error() + ")"
	}
	return e
}
