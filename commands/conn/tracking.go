// CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR: client-side caching, as Redis has it, for
// locks. commands/tracking.go tracks what the connection reads and takes; with BCAST the client
// receives the key of every event of locks whose names begin with its prefixes.

package conn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/redlock"
)

// invalidateChannel carries to a connection on RESP2 what another one redirects to it.
const invalidateChannel = "__redis__:invalidate"

// maxPrefixes bounds the prefixes of a connection: every event is compared with all of them.
const maxPrefixes = 64

var errNoTarget = commands.RedisText("The client ID you want redirect to does not exist")

// trackingWish has the options of CLIENT TRACKING ON.
type trackingWish struct {
	optIn, optOut, broadcast, noLoop bool
	redirect                         int64
	prefixes                         []string
}

func readTracking(words []string) (w trackingWish, err error) {
	for i := 0; i < len(words); i++ {
		more := i+1 < len(words)
		switch {
		case arg.IsWord(words[i], "OPTIN"):
			w.optIn = true
		case arg.IsWord(words[i], "OPTOUT"):
			w.optOut = true
		case arg.IsWord(words[i], "BCAST"):
			w.broadcast = true
		case arg.IsWord(words[i], "NOLOOP"):
			w.noLoop = true
		case arg.IsWord(words[i], "PREFIX") && more:
			i++
			w.prefixes = append(w.prefixes, strings.Clone(words[i]))
		case arg.IsWord(words[i], "REDIRECT") && more:
			i++
			id, ok := arg.ParseInteger(words[i])
			switch {
			case !ok:
				return w, commands.RedisText("value is not an integer or out of range")
			case w.redirect != 0:
				return w, commands.RedisText("A client can only redirect to a single other client")
			case id == 0: // here it means "none"
				return w, errNoTarget
			}
			w.redirect = id
		default:
			return w, commands.RedisText("syntax error")
		}
	}
	return w, nil
}

// add puts the wish beside the tracking that is on, with the texts of Redis. BCAST adds prefixes to
// the former ones: without them the client would miss invalidations.
func (w *trackingWish) add(former *commands.Tracking) error {
	existing := 0
	switch {
	case former == nil:
	case former.Broadcast != w.broadcast:
		return commands.RedisText("You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.")
	case former.OptIn && w.optOut, former.OptOut && w.optIn:
		return commands.RedisText("You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.")
	case w.prefixes != nil:
		existing = len(former.Prefixes)
		w.prefixes = slices.Concat(former.Prefixes, w.prefixes)
	}
	if w.broadcast && w.prefixes == nil {
		w.prefixes = []string{""} // all keys
	}
	return w.check(existing)
}

// check refuses what contradicts itself. So many of the prefixes are former ones.
func (w *trackingWish) check(existing int) error {
	switch {
	case w.optIn && w.optOut:
		return commands.RedisText("You can't specify both OPTIN mode and OPTOUT mode")
	case w.broadcast && (w.optIn || w.optOut):
		return commands.RedisText("OPTIN and OPTOUT are not compatible with BCAST")
	case w.prefixes != nil && !w.broadcast:
		return commands.RedisText("PREFIX option requires BCAST mode to be enabled")
	case w.broadcast && w.noLoop:
		return errors.New("NOLOOP is not served with BCAST: events do not name the connection that caused them")
	case len(w.prefixes) > maxPrefixes:
		return fmt.Errorf("%d prefixes, allowed are %d", len(w.prefixes), maxPrefixes)
	}
	for i, one := range w.prefixes {
		if len(one) > maxChannelBytes {
			return fmt.Errorf("prefix of %d bytes, allowed are 0 to %d", len(one), maxChannelBytes)
		}
		for j, other := range w.prefixes[:i] {
			if strings.HasPrefix(one, other) || strings.HasPrefix(other, one) {
				whose := map[bool]string{true: "an existing", false: "another provided"}[j < existing]
				return commands.RedisText("Prefix '" + one + "' overlaps with " + whose + " prefix '" + other + "'. Prefixes for a single client must not overlap.")
			}
		}
	}
	return nil
}

// clientTracking is a barrier: nothing of this connection is under way.
func (h *handlers) clientTracking(c *commands.Call) error {
	wish, err := readTracking(c.Args[3:])
	switch {
	case err != nil:
		return err
	case arg.IsWord(c.Args[2], "OFF"): // libraries repeat the options with it
		endTracking(c.Client)
		return c.Reply(commands.OK)
	case !arg.IsWord(c.Args[2], "ON"):
		return commands.RedisText("syntax error")
	}
	if err := wish.add(c.Client.Tracking); err != nil {
		return err
	}
	if wish.broadcast && !c.May(access.CategoryEvents) {
		return c.Reply(commands.Error("NOPERM", "this user has no permissions to track keys that it does not read (category events): leave BCAST out"))
	}
	return h.startTracking(c, wish)
}

func (h *handlers) startTracking(c *commands.Call, wish trackingWish) error {
	client := c.Client
	t := &commands.Tracking{
		OptIn: wish.optIn, OptOut: wish.optOut, NoLoop: wish.noLoop, Broadcast: wish.broadcast, Prefixes: wish.prefixes, Redirect: wish.redirect,
		Track: h.deps.Inspect.Track, MaxKeys: h.deps.MaxSubscriptions, Account: client.SetTracked,
	}
	if t.Account == nil {
		t.Account = func(int) {}
	}
	push := client.Push
	if wish.redirect != 0 && wish.redirect != client.ID {
		target := h.redirectTarget(c, wish.redirect)
		if target == nil {
			return errNoTarget
		}
		push = target.Push
		t.OnEnd(target.OnClose.Add(func(error) { t.BreakRedirect(client.Push) }))
	}
	if push == nil {
		push = func(commands.Reply, bool) {}
	}
	t.Send = func(keys commands.Reply) {
		push(commands.Reply{Kind: commands.KindPush, Items: []commands.Reply{commands.Bulk("invalidate"), keys}}, false)
		if wish.redirect != 0 {
			push(commands.Array(commands.Bulk("message"), commands.Bulk(invalidateChannel), keys), true)
		}
	}
	if wish.broadcast {
		t.OnEnd(h.broadcast(client, t))
	}
	if former := client.Tracking; former != nil && former.Len() > 0 {
		former.Send(commands.Nil) // what was tracked is tracked no longer
	}
	endTracking(client)
	client.Tracking = t
	t.OnEnd(client.OnClose.Add(func(error) { t.End() }))
	return c.Reply(commands.OK)
}

// redirectTarget is another connection of the client's user; nil if there is none of that ID.
func (h *handlers) redirectTarget(c *commands.Call, id int64) *commands.Client {
	me := c.Client.Describe()
	for _, d := range h.deps.Connections.Describe() {
		if d.ID == id && d.User == me.User {
			return h.deps.Connections.Client(id)
		}
	}
	return nil
}

func endTracking(c *commands.Client) {
	if c.Tracking != nil {
		c.Tracking.End()
		c.Tracking = nil
	}
}

// broadcast sends the key of every event that the client's user may receive. If events were lost,
// all keys are invalid.
func (h *handlers) broadcast(client *commands.Client, t *commands.Tracking) (end func()) {
	user, known := client.User, lostEvents(h.deps.Masters)
	return h.deps.Inspect.Listen(client.DB, func(e redlock.Event) {
		if lost := lostEvents(h.deps.Masters); lost != known {
			known = lost
			t.Send(commands.Nil)
		}
		key := string(e.Key)
		starts := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		if e.Kind == redlock.EventWanted || e.Kind == redlock.EventOverdue || !slices.ContainsFunc(t.Prefixes, starts) {
			return
		}
		if who := h.deps.Users.Find(user); who.May(access.CategoryEvents) && who.MayUse(key) {
			t.Send(commands.Array(commands.Bulk(key)))
		}
	})
}

// lostEvents counts the events that did not reach this daemon's listeners.
func lostEvents(m commands.Masters) int64 {
	counts := m.EventCounts()
	return counts.Dropped + counts.Missed
}

// clientCaching decides whether what the next command reads is tracked.
func (h *handlers) clientCaching(c *commands.Call) error {
	t, yes := c.Client.Tracking, arg.IsWord(c.Args[2], "YES")
	switch {
	case t == nil || !t.OptIn && !t.OptOut:
		return commands.RedisText("CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case !yes && !arg.IsWord(c.Args[2], "NO"):
		return commands.RedisText("syntax error")
	case yes && !t.OptIn:
		return commands.RedisText("CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case !yes && !t.OptOut:
		return commands.RedisText("CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	}
	t.Caching = &yes
	return c.Reply(commands.OK)
}

// clientGetRedir answers -1 without tracking, and 0 without a redirection.
func (h *handlers) clientGetRedir(c *commands.Call) error {
	return c.Reply(commands.Int(redirection(c.Client.Tracking)))
}

func redirection(t *commands.Tracking) int64 {
	if t == nil {
		return -1
	}
	return t.Redirect
}

func (h *handlers) clientTrackingInfo(c *commands.Call) error {
	t := c.Client.Tracking
	flags, prefixes := []commands.Reply{commands.Bulk("off")}, []commands.Reply{}
	if t != nil {
		flags[0] = commands.Bulk("on")
		for _, flag := range []struct {
			name string
			set  bool
		}{
			{"bcast", t.Broadcast}, {"optin", t.OptIn}, {"caching-yes", t.OptIn && t.Caching != nil},
			{"optout", t.OptOut}, {"caching-no", t.OptOut && t.Caching != nil}, {"noloop", t.NoLoop}, {"broken_redirect", t.RedirectBroken()},
		} {
			if flag.set {
				flags = append(flags, commands.Bulk(flag.name))
			}
		}
		for _, prefix := range t.Prefixes {
			prefixes = append(prefixes, commands.Bulk(prefix))
		}
	}
	return c.Reply(commands.Map(
		commands.Bulk("flags"), commands.Array(flags...),
		commands.Bulk("redirect"), commands.Int(redirection(t)),
		commands.Bulk("prefixes"), commands.Array(prefixes...),
	))
}
