// redlockd quarantine MASTER: the end of a master's incarnation, for an operator
// who replaced its files.

package cli

import (
	"context"
	"fmt"

	"redlockd/configs"
)

func (a *App) quarantine(ctx context.Context, config configs.Config, master string) error {
	if master == "" {
		return fmt.Errorf("quarantine needs a master, by its name or address, as its first word: redlockd quarantine MASTER --masters LIST%w", usage{})
	}
	if len(config.Masters) == 0 {
		return fmt.Errorf("quarantine needs --masters: embedded masters are new at every start%w", usage{})
	}
	return a.Quarantine(ctx, config, master, a.Out)
}
