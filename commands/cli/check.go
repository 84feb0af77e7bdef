// redlockd check: shows whether the masters are fit, before anything depends on them.

package cli

import (
	"context"
	"fmt"

	"redlockd/configs"
)

func (a *App) check(ctx context.Context, config configs.Config) error {
	if len(config.Masters) == 0 {
		return fmt.Errorf("check needs --masters: embedded masters are always fit%w", usage{})
	}
	return a.Check(ctx, config, a.Out)
}
