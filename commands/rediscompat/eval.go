// EVAL, EVALSHA and their _RO forms: the scripts of lock libraries are recognised by
// package dropin, and become operations on a quorum. Anything else is refused by name.

package rediscompat

import (
	"log/slog"
	"strings"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/arg"
	"redlockd/commands/dropin"
)

var errNoScript = commands.Error("NOSCRIPT", "No matching script. Please use EVAL.")

// evaluate finds the class of the script and runs it, at once if it was seen before.
func (h *handlers) evaluate(c *commands.Call, bySHA, reads bool) error {
	e := &evaluation{handlers: h, call: c, db: c.Client.DB, reads: reads, watch: dropin.Start()}
	if err := e.arguments(c.Args); err != nil {
		return err
	}
	if bySHA {
		e.sha = strings.ToLower(c.Args[1])
	} else {
		if err := checkScript(c.Args[1]); err != nil {
			return err
		}
		e.sha, e.text = shaOf(c.Args[1]), c.Args[1]
	}
	if script := redissonScripts[e.sha]; script != nil {
		return e.serveRedisson(script)
	}
	if !c.MayUseAll(e.keys...) {
		return nil
	}
	if !e.reads && h.nextIDs.isScript(e.sha, e.given) {
		return h.nextIDs.set(c, access.HeldKey{DB: e.db, Key: e.keys[0]}, e.given.Args[0])
	}
	var err error
	if e.class, err = h.deps.Scripts.Find(c.Client.User, e.sha, e.given); err != nil {
		return err
	}
	if e.class != nil {
		if e.text != "" {
			h.scripts.keep(c.Client.User, e.sha, e.text)
		}
		return e.serve()
	}
	if bySHA {
		var ok bool
		if e.text, ok = h.scripts.text(c.Client.User, e.sha); !ok {
			return c.Reply(errNoScript)
		}
	}
	c.Batch = nil // it will have left without this call
	if err := h.probes.submit(c.Client.User, e.probe); err != nil {
		c.Reply(commands.Error("TRYLATER", err.Error()))
	}
	return nil
}

// readsFirst reports whether a call of EVAL or EVALSHA is not on its way to the
// masters when it has been started, so that a later command of its pipeline could
// overtake it: the script was not seen before, or a quorum is looked at first.
func (h *handlers) readsFirst(args []string) bool {
	if len(args) < 3 {
		return false
	}
	n, ok := arg.ParseInteger(args[2])
	rest := args[3:]
	if !ok || n < 0 || n > int64(len(rest)) {
		return false
	}
	sha := args[1]
	if !arg.IsWord(args[0][:min(len(args[0]), len("evalsha"))], "EVALSHA") {
		sha = shaOf(args[1])
	}
	class, err := h.deps.Scripts.Find("", sha, dropin.ScriptCall{Keys: rest[:n], Args: rest[n:]})
	return err == nil && (class == nil || class.Looks)
}

// probe is evaluate for a script that was not seen before.
func (e *evaluation) probe() {
	err := e.recognise()
	if err == nil {
		err = e.serve()
	}
	if err != nil {
		e.call.Reply(commands.Error("ERR", err.Error()))
	}
}

// recognise turns a panic of the recogniser into a refusal, so that its call is answered.
func (e *evaluation) recognise() (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			slog.Error("script recogniser panicked", "sha1", e.sha, "err", reason)
			err = e.refuse("looking at it failed")
		}
	}()
	e.class, err = e.handlers.deps.Scripts.Recognise(e.call.Client.User, e.text, e.given)
	if err == nil {
		e.handlers.scripts.keep(e.call.Client.User, e.sha, e.text)
	}
	return err
}
