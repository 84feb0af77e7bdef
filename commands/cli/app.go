// App runs the job that the command line names; Report ends the process.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	case wordTop:
		return a.top(ctx, command.Args)
	case wordHashPassword:
		return a.hashPassword(command.Args)
	case wordCompletion:
		return a.completion(command.Args)
	case wordMan:
		return a.print(manual(a.Build))
	}
	config, err := configs.Load(command.Args, a.Environ)
	switch {
	case errors.Is(err, configs.ErrHelp) && command.Word == wordSlots:
		return a.print(slotsHelp())
	case errors.Is(err, configs.ErrHelp):
		return a.print(configs.Help())
	case errors.Is(err, configs.ErrVersion):
		return a.print(a.Build + "\n")
	case err != nil:
		return err
	case command.Word == wordServe:
		return a.Serve(ctx, config)
	}
	return a.job(ctx, config, command)
}

// job works on the masters, which have to be named.
func (a *App) job(ctx context.Context, config configs.Config, command CommandLine) error {
	if command.Word == wordQuarantine && command.Master == "" {
		return fmt.Errorf("quarantine needs a master, by its name or address, as its first word: redlockd quarantine MASTER --masters LIST%w", usage{})
	}
	if command.Word == wordMasters && len(command.Join)+len(command.Leave) == 0 {
		return errMastersUsage
	}
	if len(config.Masters)+len(config.Groups) == 0 {
		row := subcommands[slices.Index(words(), command.Word)]
		return fmt.Errorf("%s needs --masters: %s%w", row.word, row.embedded, usage{})
	}
	if command.Word == wordSlots && command.Ranges == "" {
		daemons := a.connection()
		switch {
		case command.Daemons.connect != nil:
			daemons.connect = command.Daemons.connect
		case a.variable("LOCK_CONNECT") == "" && len(config.Listen) > 0: // the file is that of a daemon
			daemons.connect = config.Listen[:1]
		}
		daemons.ca = command.Daemons.ca
		var err error
		if command.Rates, err = a.slotRates(ctx, daemons); err != nil {
			return err
		}
	}
	return a.Jobs[command.Word](ctx, config, command, a.Out)
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
