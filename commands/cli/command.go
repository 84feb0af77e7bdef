// Parse: the words on the command line, without the settings.

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Words that may stand first on the command line. No word means: serve.
const (
	wordServe        = ""
	wordBootstrap    = "bootstrap"
	wordCheck        = "check"
	wordReconfigure  = "reconfigure"
	wordQuarantine   = "quarantine"
	wordLock         = "lock"
	wordHashPassword = "hash-password"
	wordVersion      = "version"
	wordHelp         = "help"
)

// ErrUsage is wrapped by every error about the words themselves; errors about
// settings are configs.ErrInvalid.
var ErrUsage = errors.New("wrong usage")

// CommandLine is the command line taken apart.
type CommandLine struct {
	Word   string // "" or one of the words above
	Force  bool   // bootstrap --force, reconfigure --force
	Master string // quarantine MASTER
	// FenceAbove is bootstrap --fence-above, 0 without it.
	FenceAbove int64
	Args       []string // the options, for configs.Load or of lock
}

// Parse takes the command line without the program's name.
func Parse(args []string) (CommandLine, error) {
	command := CommandLine{Args: args}
	if len(args) > 0 && args[0] != "" && !strings.HasPrefix(args[0], "-") {
		command.Word, command.Args = args[0], args[1:]
	}
	switch command.Word {
	case wordServe, wordCheck, wordLock, wordHashPassword:
	case wordBootstrap, wordReconfigure:
		command.Args, command.Force = takeForce(command.Args)
		if command.Word == wordBootstrap {
			return takeFenceAbove(command)
		}
	case wordQuarantine:
		if args := command.Args; len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			command.Master, command.Args = args[0], args[1:]
		}
	case wordHelp:
		return parseHelp(command.Args)
	case wordVersion:
		if len(command.Args) > 0 {
			return CommandLine{}, fmt.Errorf("%s takes no further words%w", command.Word, usage{})
		}
	default:
		return CommandLine{}, noCommand(command.Word)
	}
	return command, nil
}

func noCommand(word string) error {
	return fmt.Errorf("%s is no command; allowed: bootstrap, check, reconfigure, quarantine, lock, hash-password, version, help, or options alone to serve; see redlockd help%w", shown(word), usage{})
}

// parseHelp takes the words after help: none, or one command. Those without a page of their
// own are on the first one.
func parseHelp(words []string) (CommandLine, error) {
	if len(words) == 0 {
		return CommandLine{Word: wordHelp, Args: words}, nil
	}
	switch word := words[0]; {
	case len(words) > 1:
		return CommandLine{}, fmt.Errorf("help takes one command at most%w", usage{})
	case word == wordLock || word == wordHashPassword:
		return CommandLine{Word: word, Args: []string{"--help"}}, nil
	case slices.Contains([]string{wordBootstrap, wordCheck, wordReconfigure, wordQuarantine, wordVersion, wordHelp}, word):
		return CommandLine{Word: wordHelp}, nil
	default:
		return CommandLine{}, noCommand(word)
	}
}

// takeForce removes --force. It is for one run and therefore no setting that a file
// or the environment could hold.
func takeForce(args []string) (rest []string, force bool) {
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	for i, arg := range args {
		if i < end && arg == "--force" {
			force = true
			continue
		}
		rest = append(rest, arg)
	}
	return rest, force
}

// takeFenceAbove removes --fence-above N, which is no setting for the same reason.
// The masters decide which numbers are allowed.
func takeFenceAbove(command CommandLine) (CommandLine, error) {
	const flag = "--fence-above"
	args := command.Args
	for i, arg := range args {
		value, joined := strings.CutPrefix(arg, flag+"=")
		switch {
		case arg == "--":
			return command, nil
		case joined:
			command.Args = slices.Concat(args[:i], args[i+1:])
		case arg == flag && i+1 < len(args):
			value = args[i+1]
			command.Args = slices.Concat(args[:i], args[i+2:])
		case arg == flag:
			value = ""
		default:
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return CommandLine{}, fmt.Errorf("%s = %q is no whole number above 0; give the highest fence that the protected resources have seen%w", flag, value, usage{})
		}
		command.FenceAbove = n
		return command, nil
	}
	return command, nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9-]{1,32}$`)

// shown repeats a word unless it may be a master with its password.
func shown(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "the first word"
}

// usage makes an error an ErrUsage and adds nothing to its text.
type usage struct{}

func (usage) Error() string { return "" }
func (usage) Unwrap() error { return ErrUsage }
