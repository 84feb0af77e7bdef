// redlockd reconfigure: another list of masters, other limits, another version.

package cli

import (
	"context"
	"fmt"

	"redlockd/configs"
)

func (a *App) reconfigure(ctx context.Context, config configs.Config, force bool) error {
	if len(config.Masters) == 0 {
		return fmt.Errorf("reconfigure needs --masters: embedded masters take their settings from every start%w", usage{})
	}
	return a.Reconfigure(ctx, config, force, a.Out)
}
