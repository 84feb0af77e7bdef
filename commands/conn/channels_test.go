package conn

import (
	"fmt"
	"runtime"
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

// The limits of memory count what a subscription takes.
func TestChannels_CostWhatIsCounted(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("counting coverage takes memory")
	}
	const connections, each = 100, 500
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // what the first left in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	r := &channels{events: &quiet{}}
	var clients [connections]commands.Client
	before, counted := inUse(), 0
	for i := range clients {
		c := &clients[i]
		c.Push = func(commands.Reply, bool) {}
		for k := range each {
			r.subscribe(c, []string{c.Channels.Add(fmt.Sprint("dlock:", i, ":", k))}, nil)
		}
		counted += c.SubscribedBytes()
	}
	cost := inUse() - before
	t.Logf("%d bytes for each channel, %d are counted", cost/connections/each, counted/connections/each)
	if cost > int64(counted) {
		t.Errorf("%d bytes for each channel, %d are counted", cost/connections/each, counted/connections/each)
	}
	runtime.KeepAlive(r)
}
