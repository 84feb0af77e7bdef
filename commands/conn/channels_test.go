package conn

import (
	"testing"

	"redlockd/commands"
	"redlockd/redlock"
)

// quiet has no events.
type quiet struct {
	commands.Inspect
	listening int
}

func (q *quiet) Listen(int, func(redlock.Event)) func() {
	q.listening++
	return func() { q.listening-- }
}

func TestChannels_KeepNothingOfAConnectionWithoutSubscriptions(t *testing.T) {
	events := &quiet{}
	r := &channels{events: events}
	client := &commands.Client{Push: func(commands.Reply, bool) {}}
	for name, end := range map[string]func(){
		"RESET": func() { r.unsubscribeAll(client) },
		"close": func() { client.OnClose.Run() },
		"after": func() {}, // the connection has ended before
	} {
		if name == "after" {
			client.OnClose.Run()
		}
		r.subscribe(client, []string{"dlock:a"}, nil)
		end()
		if len(r.subscribers) > 0 || len(r.dbs) > 0 || events.listening > 0 {
			t.Errorf("%s: %d connections, %d databases, %d listeners", name, len(r.subscribers), len(r.dbs), events.listening)
		}
		client.OnClose = commands.OnClose{}
	}
}
