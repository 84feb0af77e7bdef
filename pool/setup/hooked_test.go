package setup

// hooked_test.go: links on whose exchanges a test acts.

import (
	"context"

	"redlockd/pool/wire"
)

// hook exchanges the commands for a master by calling exchange, or loses them or their answers.
type hook func(master string, commands []wire.Command, exchange func() []wire.Reply) []wire.Reply

// hooked is a dialer of such links.
func hooked(dial wire.Dialer, around hook) wire.Dialer {
	return func(ctx context.Context, m wire.Master, db int) (wire.Link, error) {
		link, err := dial(ctx, m, db)
		if err != nil {
			return nil, err
		}
		return hookedLink{link, m.Name, around}, nil
	}
}

type hookedLink struct {
	wire.Link
	master string
	around hook
}

func (l hookedLink) Exchange(commands []wire.Command, replies []wire.Reply) []wire.Reply {
	return l.around(l.master, commands, func() []wire.Reply { return l.Link.Exchange(commands, replies) })
}
