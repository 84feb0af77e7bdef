// Parse: the words on the command line, without the settings, and the table of subcommands.

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"redlockd/configs"
)

// Words that may stand first on the command line. No word means: serve.
const (
	wordServe        = ""
	wordBootstrap    = "bootstrap"
	wordCheck        = "check"
	wordReconfigure  = "reconfigure"
	wordMasters      = "masters"
	wordQuarantine   = "quarantine"
	wordSlots        = "slots"
	wordLock         = "lock"
	wordTop          = "top"
	wordHashPassword = "hash-password"
	wordVersion      = "version"
	wordHelp         = "help"
	wordCompletion   = "completion"
	wordMan          = "man"
)

// subcommand is one row of the table, from which the manual, the completion of shells and
// errors are made.
type subcommand struct {
	word, arguments, help string
	options               []flagRow // of its own
	// embedded is why it works on --masters alone, and takes the options of the daemon;
	// "" = it takes none of them.
	embedded string
}

const shells = "bash|zsh|fish"

var subcommands = []subcommand{
	{wordBootstrap, "", "prepare blank masters, once: no earlier memory of theirs matters", []flagRow{
		{"force", "", "also masters that carry identities already"},
		{"once", "", "succeed and change nothing if the masters carry identities, for a job that may run again"},
		{"aged", "MASTER", "begin with one blank master where no daemon does; it votes when it has its age"},
		{"fence-above", "N", "every fence is higher than the highest one that the protected resources have seen"},
	}, "embedded masters are new at every start"},
	{wordCheck, "", "show whether the masters are fit", []flagRow{
		{"performance", "", "also time writes, and print which --master-timeout fits"},
	}, "embedded masters are always fit"},
	{wordReconfigure, "", "put other masters, limits or another version in force", []flagRow{
		{"force", "", "assert that no daemon with other settings runs any more"},
		{"absent", "", "masters join that do not answer yet"},
		{"wait", "", "end when all masters vote, and show how long that takes"},
	}, "embedded masters take their settings from every start"},
	{wordMasters, "add|remove|replace", "show the masters and their daemons; add NAME=ADDRESS, remove NAME or replace OLD NEW=ADDRESS while the daemons serve", []flagRow{
		{"force", "", "as that of reconfigure"},
		{"absent", "", "likewise"},
		{"wait", "", "likewise"},
	}, "embedded masters stay as they are"},
	{wordSlots, "[move RANGES]", "show which group has which slots; move RANGES --to GROUP: give slots to another group while the daemons serve", slotsOptions(), "embedded masters are one group; slots move between the [[group]] tables of the file, --config FILE"},
	{wordQuarantine, "MASTER", "end the incarnation of a master whose files were replaced", []flagRow{
		{"force", "", "also if too few other masters vote: nothing is granted until it votes again"},
	}, "embedded masters are new at every start"},
	{wordLock, "[OPTION...] KEY -- COMMAND [ARGUMENT...]", "run COMMAND while the lock on KEY is held", optionsOf(lockFlags(&lockOptions{})), ""},
	{wordTop, "", "show masters, rates, waits and the locks held longest, each second", optionsOf(topFlags(&topOptions{})), ""},
	{wordHashPassword, "", "read a password and print its line for the users file", []flagRow{
		{"sha256", "", "a fast digest, for long random passwords alone"},
	}, ""},
	{wordVersion, "", "print the version", nil, ""},
	{wordHelp, "[SUBCOMMAND]", "print the help, or that of a subcommand", nil, ""},
	{wordCompletion, shells, "print the completion script of a shell", nil, ""},
	{wordMan, "", "print this manual page", nil, ""},
}

// Parse takes the command line without the program's name.
func Parse(args []string) (CommandLine, error) {
	command := CommandLine{Args: args}
	if len(args) > 0 && args[0] != "" && !strings.HasPrefix(args[0], "-") {
		command.Word, command.Args = args[0], args[1:]
	}
	var err error
	switch command.Word {
	case wordServe, wordLock, wordTop, wordHashPassword, wordCompletion:
	case wordBootstrap:
		command.Force = command.takeSwitch("--force")
		err = errors.Join(command.takeFenceAbove(), command.takeAged(), command.takeOnce())
	case wordReconfigure:
		command.takeTerms()
	case wordMasters:
		command.takeTerms()
		err = command.takeChange()
	case wordCheck:
		command.Performance = command.takeSwitch("--performance")
	case wordQuarantine:
		command.Force = command.takeSwitch("--force")
		if args := command.Args; len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			command.Master, command.Args = args[0], args[1:]
		}
	case wordSlots:
		err = command.takeMove()
	case wordHelp:
		return parseHelp(command.Args)
	case wordVersion, wordMan:
		if len(command.Args) > 0 {
			err = fmt.Errorf("%s takes no further words%w", command.Word, usage{})
		}
	default:
		err = noCommand(command.Word)
	}
	if err != nil {
		return CommandLine{}, err
	}
	return command, nil
}

func noCommand(word string) error {
	word = shown(word)
	if clientCommand.MatchString(word) {
		return fmt.Errorf("%s is a command of clients, not of this program; a daemon describes it: redis-cli -p 7379 COMMAND DOCS %s%w", word, strings.ToUpper(word), usage{})
	}
	return fmt.Errorf("%s is no command, the nearest one is %s; allowed: %s, or options alone to serve; see redlockd help%w",
		word, configs.Nearest(word, words()), strings.Join(words(), ", "), usage{})
}

// clientCommand matches what clients send.
var clientCommand = regexp.MustCompile(`(?i)^d(m?(un)?lock|m?extend|info|nextid|id|work|force|revoke|meta|masters)[a-z]*$`)

func words() (all []string) {
	for _, s := range subcommands {
		all = append(all, s.word)
	}
	return all
}

// parseHelp takes the words after help: none, or one command.
func parseHelp(after []string) (CommandLine, error) {
	if len(after) == 0 {
		return CommandLine{Word: wordHelp, Args: after}, nil
	}
	switch word := after[0]; {
	case len(after) > 1:
		return CommandLine{}, fmt.Errorf("help takes one command at most%w", usage{})
	case word == wordLock || word == wordTop || word == wordSlots || word == wordHashPassword:
		return CommandLine{Word: word, Args: []string{"--help"}}, nil
	case slices.Contains(words(), word):
		return CommandLine{Word: wordHelp, About: word}, nil
	default:
		return CommandLine{}, noCommand(word)
	}
}

// takeSwitch removes a switch such as --force and reports whether it was there. It is for one
// run and therefore no setting that a file or the environment could hold.
func (c *CommandLine) takeSwitch(flag string) (found bool) {
	for i := 0; i < len(c.Args) && c.Args[i] != "--"; i++ {
		if c.Args[i] == flag {
			c.Args, found = slices.Concat(c.Args[:i], c.Args[i+1:]), true
			i--
		}
	}
	return found
}

// takeTerms removes the switches of a change of the masters.
func (c *CommandLine) takeTerms() {
	c.Force, c.Absent, c.Wait = c.takeSwitch("--force"), c.takeSwitch("--absent"), c.takeSwitch("--wait")
}

// takeValue removes an option with its value, which is no setting for the same reason.
func (c *CommandLine) takeValue(flag string) (value string, found bool) {
	i := slices.IndexFunc(c.Args, func(arg string) bool { return arg == "--" || arg == flag || strings.HasPrefix(arg, flag+"=") })
	if i < 0 || c.Args[i] == "--" {
		return "", false
	}
	value, joined := strings.CutPrefix(c.Args[i], flag+"=")
	rest := c.Args[i+1:]
	if !joined {
		value = ""
		if len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
	}
	c.Args = slices.Concat(c.Args[:i], rest)
	return value, true
}

// takeWords removes the words before the options.
func (c *CommandLine) takeWords() (words []string) {
	n := slices.IndexFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if n < 0 {
		n = len(c.Args)
	}
	words, c.Args = c.Args[:n], c.Args[n:]
	return words
}

// takeChange removes the words of masters before its options. Without words they are shown.
func (c *CommandLine) takeChange() (err error) {
	var join []string
	switch words := c.takeWords(); {
	case len(words) == 0:
		return nil
	case len(words) > 1 && words[0] == "add":
		join = words[1:]
	case len(words) > 1 && words[0] == "remove":
		c.Leave = words[1:]
	case len(words) == 3 && words[0] == "replace":
		c.Leave, join = words[1:2], words[2:]
	default:
		return errMastersUsage
	}
	if len(join) > 0 {
		c.Join, err = configs.ParseMasters(strings.Split(strings.Join(join, ","), ","))
	}
	return err
}

var errMastersUsage = fmt.Errorf("masters takes no words, or its change before its options: redlockd masters add NAME=ADDRESS, remove NAME, or replace OLD NEW=ADDRESS; then --masters LIST and the other settings of the daemons%w", usage{})

// takeMove removes the words of slots, which may also follow its options.
func (c *CommandLine) takeMove() error {
	words, to := c.takeWords(), false
	if list, found := c.takeValue("--connect"); found {
		c.Daemons.connect = strings.Split(list, ",")
	}
	c.Daemons.ca, _ = c.takeValue("--ca")
	c.To, to = c.takeValue("--to")
	switch {
	case len(words) == 0 && !to:
		return nil
	case len(words) != 2 || words[0] != "move" || c.To == "":
		return fmt.Errorf("slots takes no words, or move RANGES --to GROUP, before its options: redlockd slots move 0-1000 --to g2 --config FILE%w", usage{})
	}
	c.Ranges = words[1]
	return nil
}

// takeFenceAbove removes --fence-above N. The masters decide which numbers are allowed.
func (c *CommandLine) takeFenceAbove() error {
	value, found := c.takeValue("--fence-above")
	if !found {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("--fence-above = %q is no whole number above 0; give the highest fence that the protected resources have seen%w", value, usage{})
	}
	c.FenceAbove = n
	return nil
}

// takeAged removes --aged MASTER, which is a command of its own.
func (c *CommandLine) takeAged() error {
	value, found := c.takeValue("--aged")
	switch {
	case !found:
		return nil
	case value == "" || strings.HasPrefix(value, "-"):
		return fmt.Errorf("--aged needs a master, by its name or address: redlockd bootstrap --aged MASTER --masters LIST%w", usage{})
	case c.Force || c.FenceAbove > 0:
		return fmt.Errorf("--aged begins with one blank master and takes neither --force nor --fence-above; leave one of them out%w", usage{})
	}
	c.Aged = value
	return nil
}

// takeOnce removes --once. What would change masters that carry identities contradicts it.
func (c *CommandLine) takeOnce() error {
	c.Once = c.takeSwitch("--once")
	if c.Once && (c.Force || c.FenceAbove > 0 || c.Aged != "") {
		return fmt.Errorf("--once changes nothing where masters carry identities and takes none of --force, --fence-above and --aged; leave it or them out%w", usage{})
	}
	return nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9-]{1,32}$`)

// shown repeats a word unless it may be a master with its password.
func shown(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "the first word"
}
