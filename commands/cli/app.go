// App runs the job that the command line names; Report ends the process.

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
	In      io.Reader // for the command of lock
	Out     io.Writer // for the output of the job; errors go to Report
	Err     io.Writer // for messages of lock and its command
	Build   string    // one line about this program, see Build

	// HashPassword makes the text of password-argon2id.
	HashPassword func(password string) string
	// Serve runs the daemon until ctx ends.
	Serve func(ctx context.Context, config configs.Config) error
	// Bootstrap records on the masters that no earlier incarnation matters, and writes
	// the result to out. force is for a group that already carries identities; every
	// fence is above fenceAbove.
	Bootstrap func(ctx context.Context, config configs.Config, force bool, fenceAbove int64, out io.Writer) error
	// Check writes to out whether the masters are fit; it returns an error if they are not.
	Check func(ctx context.Context, config configs.Config, out io.Writer) error
	// Reconfigure puts other settings in force on the masters. With force the operator
	// asserts that no daemon with other settings runs any more.
	Reconfigure func(ctx context.Context, config configs.Config, force bool, out io.Writer) error
	// Quarantine ends the incarnation of one master, given by its name or address.
	Quarantine func(ctx context.Context, config configs.Config, master string, out io.Writer) error
}

// Run runs the job that args (without the program's name) name. The error is for
// Report.
func (a *App) Run(ctx context.Context, args []string) error {
	command, err := Parse(args)
	if err != nil {
		return err
	}
	switch command.Word {
	case wordHelp:
		return a.print(configs.Help())
	case wordVersion:
		return a.print(a.Build + "\n")
	case wordLock:
		return a.lock(ctx, command.Args)
	case wordHashPassword:
		return a.hashPassword(command.Args)
	}
	config, err := configs.Load(command.Args, a.Environ)
	switch {
	case errors.Is(err, configs.ErrHelp):
		return a.print(configs.Help())
	case errors.Is(err, configs.ErrVersion):
		return a.print(a.Build + "\n")
	case err != nil:
		return err
	}
	switch command.Word {
	case wordBootstrap:
		return a.bootstrap(ctx, config, command)
	case wordCheck:
		return a.check(ctx, config)
	case wordReconfigure:
		return a.reconfigure(ctx, config, command.Force)
	case wordQuarantine:
		return a.quarantine(ctx, config, command.Master)
	}
	return a.Serve(ctx, config)
}

func (a *App) bootstrap(ctx context.Context, config configs.Config, command CommandLine) error {
	if len(config.Masters) == 0 {
		return fmt.Errorf("bootstrap needs --masters: embedded masters are new at every start%w", usage{})
	}
	return a.Bootstrap(ctx, config, command.Force, command.FenceAbove, a.Out)
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
