// Run runs the job that the command line names.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"redlockd/configs"
)

// Run runs the job that args (without the program's name) name. The error is for
// Report.
func (a *App) Run(ctx context.Context, args []string) error {
	command, err := Parse(args)
	if err != nil {
		return err
	}
	switch command.Word {
	case wordHelp:
		return a.print(help(command.About))
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
		return a.print(help(command.Word))
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
