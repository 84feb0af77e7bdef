package mutants

// active.go: the mutant that this process is, if it is one. The overlay's text calls it.

import (
	"embed"
	"os"
	"path"
	"strings"
)

// Variable of the environment names the mutant that a program of Build is. It does not
// have the prefix of options, so that a daemon of such a build accepts it.
const Variable = "BROKEN_RULE"

var active = Find(os.Getenv(Variable))

// Name returns the name of the mutant that this process is, "" for none.
func Name() string {
	if active == nil {
		return ""
	}
	return active.Name
}

// Script is the text of a script as this process' mutant has it.
func Script(file, text string) string {
	if active == nil {
		return text
	}
	for _, c := range active.Changes {
		if c.File == file {
			text = strings.Replace(text, c.Old, c.New, 1)
		}
	}
	return text
}

// Scripts are the files of a directory below the module's root, as this process' mutant
// has them.
type Scripts struct {
	FS  embed.FS
	Dir string
}

// ReadFile returns one of them.
func (s Scripts) ReadFile(name string) ([]byte, error) {
	text, err := s.FS.ReadFile(name)
	return []byte(Script(path.Join(s.Dir, name), string(text))), err
}
