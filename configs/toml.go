package configs

// toml.go reads TOML files.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

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
