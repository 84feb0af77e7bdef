package commands

import "testing"

func TestINFO_ShowsPanicsThatCostAConnection(t *testing.T) {
	c := newConversation(t)
	c.serve(Deps{Clients: func() ClientCounts { return ClientCounts{Panics: 3} }})
	c.wantStats("stats", map[string]string{"recovered_panics": "3"})
}
