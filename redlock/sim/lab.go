package sim

import (
	"strings"

	"redlockd/redlock/sim/fake"
)

// Lab is what worlds of one thread share: compiled scripts.
type Lab struct {
	scripts *fake.Scripts
	kinds   map[string]scriptKind // by SHA1, of those that have run
}

// NewLab prepares a thread.
func NewLab() *Lab { return &Lab{fake.NewScripts(), map[string]scriptKind{}} }

// scriptKind distinguishes the scripts that the checker observes.
type scriptKind int

const (
	scriptOther scriptKind = iota
	scriptEnlist
	scriptExtend
	scriptDequeue
)

// scriptHeads are how the texts of these scripts begin.
var scriptHeads = map[string]scriptKind{
	"-- Enter a queue at its end": scriptEnlist,
	"-- Leave a queue":            scriptDequeue,
	"-- Make held locks last":     scriptExtend,
	"-- Make several held locks":  scriptExtend,
}

// kind is the kind of a script that a master has loaded.
func (lab *Lab) kind(sha string) scriptKind {
	kind, known := lab.kinds[sha]
	if text := lab.scripts.Texts[sha]; !known && text != "" {
		for head, one := range scriptHeads {
			if strings.HasPrefix(text, head) {
				kind = one
			}
		}
		lab.kinds[sha] = kind
	}
	return kind
}
