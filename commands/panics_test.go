package commands_test

import (
	"testing"

	"redlockd/commands"
)

func TestINFO_ShowsPanicsThatCostAConnection(t *testing.T) {
	c := newConversation(t)
	c.serve(commands.Deps{Clients: func() commands.ClientCounts { return commands.ClientCounts{Panics: 3} }})
	c.wantStats("stats", map[string]string{"recovered_panics": "3"})
}
