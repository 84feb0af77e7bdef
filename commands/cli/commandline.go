// CommandLine is the command line taken apart.

package cli

import "redlockd/configs"

type CommandLine struct {
	Word   string // "" or the word of a subcommand
	Force  bool   // bootstrap --force, reconfigure --force, masters --force, quarantine --force
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
	Args        []string   // the options, for configs.Load or of the subcommand
}

// SlotRate is how many operations a second a range of slots of a group has.
type SlotRate struct {
	Range, Group string // 0-1000, g1
	PerSecond    float64
}
