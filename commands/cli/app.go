// App is the program, and Report ends the process.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"redlockd/configs"
)

// App is the program; main adds the functions that do the work.
type App struct {
	Environ []string  // "NAME=value", as os.Environ has it
	In      io.Reader // for the command of lock, and the keys of top
	Out     io.Writer // for the output of the job; errors go to Report
	Err     io.Writer // for messages of lock and its command
	Build   string    // one line about this program, see Build

	// HashPassword makes the text of password-argon2id.
	HashPassword func(password string) string
	// Serve runs the daemon until ctx ends.
	Serve func(ctx context.Context, config configs.Config) error
	// Jobs work on the masters without serving, by the word of the subcommand: bootstrap,
	// check, reconfigure, masters, slots and quarantine.
	Jobs map[string]Job
}

// Job writes its result to out.
type Job func(ctx context.Context, config configs.Config, command CommandLine, out io.Writer) error

// variable is the value of an environment variable, "" without it.
func (a *App) variable(name string) string {
	for _, variable := range a.Environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

func (a *App) print(text string) error {
	_, err := io.WriteString(a.Out, text)
	return err
}

// Exit codes of the process.
const (
	ExitOK      = 0
	ExitRuntime = 1 // something failed that could have worked
	ExitUsage   = 2 // the command line, the environment or the file has to change
)

// Report writes an error for people, a line for each thing that is wrong, and
// returns the exit code. nil writes nothing.
func Report(out io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	var exit *Exit
	if errors.As(err, &exit) && exit.Reason == "" {
		return exit.Code
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(out, "redlockd: %s\n", strings.TrimRight(line, "\n"))
	}
	if errors.Is(err, configs.ErrInvalid) || errors.Is(err, ErrUsage) {
		return ExitUsage
	}
	if exit != nil {
		return exit.Code
	}
	return ExitRuntime
}

// Exit ends the process with the code of a command, or with one that is more specific
// than ExitRuntime.
type Exit struct {
	Code   int
	Reason string // for people, "" if everything has been reported
}

func (e *Exit) Error() string { return e.Reason }

// ErrUsage is wrapped by every error about the words themselves; errors about
// settings are configs.ErrInvalid.
var ErrUsage = errors.New("wrong usage")

// usage makes an error an ErrUsage and adds nothing to its text.
type usage struct{}

func (usage) Error() string { return "" }
func (usage) Unwrap() error { return ErrUsage }

// flagRow is one option of a subcommand; Argument is "" for a switch.
type flagRow struct{ Name, Argument, Help string }

// CommandLine is the command line taken apart.
type CommandLine struct {
	Word   string // "" or the word of a subcommand
	Force  bool   // bootstrap --force, reconfigure --force, masters --force, quarantine --force
	Once   bool   // bootstrap --once
	Absent bool   // reconfigure --absent, masters --absent
	Wait   bool   // reconfigure --wait, masters --wait
	Master string // quarantine MASTER
	// Join and Leave are the masters of masters add, remove and replace.
	Join  []configs.Master
	Leave []string
	// FenceAbove is bootstrap --fence-above, 0 without it.
	FenceAbove int64
	// Ranges and To are those of slots move; "" = show the map.
	Ranges, To  string
	Daemons     connection // slots --connect, --ca
	Rates       []SlotRate // slots: what the daemons report
	Aged        string     // bootstrap --aged MASTER
	Performance bool       // check --performance
	About       string     // help SUBCOMMAND, "" = all
	Args        []string   // the options, for configs.Load or of the subcommand
}

// SlotRate has the operations a second of a range of slots of a group.
type SlotRate struct {
	Range, Group string // 0-1000, g1
	PerSecond    float64
}
