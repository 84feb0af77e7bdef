// Execution of scripts of a known class on the masters.

package rediscompat

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/commands"
	"redlockd/commands/access"
	"redlockd/commands/dropin"
	"redlockd/pool"
	"redlockd/redlock"
)

// serve starts the operation; an error is the call's only answer.
func (e *evaluation) serve() error {
	e.watch.Count(e.handlers.deps.DropinStats, e.class.Library, e.class.Op.String())
	if e.class.Pattern != "" && e.handlers.deps.CompatTest {
		return e.handlers.forwardScript(e.call, e.text, e.given.Args)
	}
	locks, err := e.locks()
	if err != nil {
		return err
	}
	if e.reads && e.class.Op != dropin.Read {
		return commands.RedisText("Write commands are not allowed from read-only scripts.")
	}
	if err := e.checkOwnNames(); err != nil {
		return err
	}
	if !e.allowed() {
		return nil
	}
	token := redlock.Token(e.class.TokenOf(e.given))
	switch e.class.Op {
	case dropin.Read:
		return e.readLocks(locks)
	case dropin.Overwrite, dropin.Discard:
		if !mayForce(e.call) {
			return nil
		}
	default:
		if token == "" || slices.Contains(e.tokens(), "") {
			return e.refuse("its token is empty, allowed are 1 to %d bytes", maxValueBytes)
		}
	}
	if e.class.OnlyReleases() {
		e.release(redlock.UnlockRequest{DB: e.db, Key: locks[0], Token: token})
		return nil
	}
	ttl, err := e.lease()
	if err != nil {
		return err
	}
	script := e.script(ttl)
	switch e.class.Op {
	case dropin.Acquire, dropin.Reacquire:
		e.acquire(script, locks, token, ttl)
	case dropin.ExtendAdd:
		e.extendBy(script, locks, token, ttl)
	case dropin.Overwrite, dropin.Discard:
		e.force(redlock.ScriptRequest{Script: script, Effect: redlock.ScriptForces, Keys: locks, Token: token, TTL: ttl})
	default:
		e.run(redlock.ScriptRequest{Script: script, Effect: e.effect(), Keys: locks, Token: token, TTL: ttl}, func(bool) {})
	}
	return nil
}

// tokens are those of the locks, if each is given its own; else nil.
func (e *evaluation) tokens() (tokens []redlock.Token) {
	for _, at := range e.class.Tokens {
		tokens = append(tokens, redlock.Token(e.given.Args[at-1]))
	}
	return tokens
}

// allowed checks the categories of the user. A script that reads more than its own
// token counts as GET. A script that is neither a library's nor pinned by the operator
// needs the category force, although its evaluation shows that it takes no lock of
// others: two independent checks keep it from that. A script that is served as a
// release, or not run at all, can do no more than that.
func (e *evaluation) allowed() bool {
	vouched := e.class.By != dropin.ByText
	var needs, why string
	switch {
	case e.class.Op == dropin.Read && vouched && e.class.Token > 0, e.class.OnlyReleases():
		return true
	case e.class.Op == dropin.Read:
		needs, why = access.CategoryRead, "it shows the holder of a lock"
	case vouched && e.signalsItsOwn():
		return true
	case vouched:
		needs = access.CategoryForce
		why = "it deletes a key that is not the '" + signalPrefix + "' of its lock, regardless of the holder"
	default:
		needs = access.CategoryForce
		why = "it is known by its behaviour alone; if it is a lock's, the operator can declare it with --script-class " + e.sha + "=<class>"
	}
	if e.call.May(needs) {
		return true
	}
	e.call.Reply(commands.Error("NOPERM", "this user has no permissions to run script "+e.sha+" (category "+needs+"): "+why))
	return false
}

// signalsItsOwn reports whether the lists that a library's script wakes waiters with are
// its lock's. The script replaces them unread, and under another name a list may be a lock.
func (e *evaluation) signalsItsOwn() bool {
	for _, i := range e.class.Signals {
		name, isSignal := strings.CutPrefix(e.given.Keys[i-1], signalPrefix)
		if !isSignal || e.given.Keys[0] != lockPrefix+name {
			return false
		}
	}
	return true
}

// checkOwnNames: a script may send messages to the channels in its arguments, but not
// to the daemons' own.
func (e *evaluation) checkOwnNames() error {
	own := e.handlers.deps.KeyPrefix + access.ReservedPrefix
	for i, one := range e.given.Args {
		if strings.HasPrefix(one, own) {
			return e.refuse("argument %d begins with '%s', as only the daemon's own names do", i+1, own)
		}
	}
	return nil
}

// locks returns the keys that are locks, without the lists of signals.
func (e *evaluation) locks() (locks []redlock.Key, err error) {
	c := e.class
	switch {
	case c.Pattern != "":
		return nil, e.refuse("it looks for its keys by a pattern")
	case c.DB > 0 && e.given.Args[c.DB-1] != strconv.Itoa(e.db):
		return nil, e.refuse("it selects database %s and the connection is in %d: SELECT the same", commands.Clip(e.given.Args[c.DB-1], commands.ShownBytes), e.db)
	case e.failsLikeAMaster():
		return nil, e.refuse("its errors could be taken for a master's")
	}
	if len(e.keys) == 1 && len(c.Signals) == 0 {
		return e.keys, nil
	}
	for i, key := range e.keys {
		if !slices.Contains(c.Signals, i+1) && !slices.Contains(locks, key) {
			locks = append(locks, key)
		}
	}
	if len(locks) == 0 {
		return nil, e.refuse("none of its keys is a lock")
	}
	return locks, nil
}

// failsLikeAMaster reports whether the script may fail with an error that ends a
// master's connection.
func (e *evaluation) failsLikeAMaster() bool {
	for h := dropin.Free; h <= dropin.NoExpiry; h++ {
		r := e.class.Predict(h, e.given, "", 0)
		if r.Kind == dropin.KindError && (strings.HasPrefix(r.Text, "NOSCRIPT") || strings.HasPrefix(r.Text, "READONLY")) {
			return true
		}
	}
	return false
}

// lease is the requested lease, by the operator's policies; 0 if the script has none.
func (e *evaluation) lease() (time.Duration, error) {
	if e.class.Op == dropin.Release || e.class.Op == dropin.Discard {
		return 0, nil
	}
	ms, timed := e.class.TTL(e.given, time.Now().UnixMilli())
	if !timed {
		if e.handlers.endlessToo() {
			return redlock.Endless, nil
		}
		return 0, e.refuse("it asks for no expiry, which only --no-ttl=allow lets a script do: give a lease")
	}
	ttl, err := e.handlers.lease(ms)
	if err == nil && e.class.Time.Arg == 0 && ttl.Milliseconds() != ms {
		return 0, e.refuse("its lease of %d ms is written in the script and exceeds max-ttl, %d ms (--max-ttl)", ms, ttl.Milliseconds())
	}
	return ttl, err
}

var units = map[dropin.Unit]redlock.ScriptUnit{
	dropin.Milliseconds: redlock.ScriptMilliseconds, dropin.Seconds: redlock.ScriptSeconds,
	dropin.UnixMilliseconds: redlock.ScriptUnixMilliseconds, dropin.UnixSeconds: redlock.ScriptUnixSeconds,
}

// script is what runs on the masters. What is added to a lease is sent as it is:
// the lease got the time for late answers when it began.
func (e *evaluation) script(ttl time.Duration) *redlock.Script {
	class, given := e.class, e.given
	s := &redlock.Script{Text: e.text, Keys: e.keys, Args: given.Args, Prolongs: class.Op == dropin.Reacquire}
	if ttl > 0 && ttl < redlock.Endless && class.Op != dropin.ExtendAdd {
		s.Time = redlock.ScriptTime{Arg: class.Time.Arg, Unit: units[class.Time.Unit]}
	}
	s.Vote = func(r pool.Reply) redlock.ScriptVote {
		switch class.Vote(given, e.answer(r)) {
		case dropin.Yes:
			return redlock.ScriptYes
		case dropin.No:
			return redlock.ScriptNo
		}
		return redlock.ScriptUnclear
	}
	return s
}

// answer is a master's reply, with the keys as the client names them.
func (e *evaluation) answer(r pool.Reply) dropin.ScriptReply {
	reply := ofMaster(r)
	if prefix := e.handlers.deps.KeyPrefix; prefix != "" {
		e.strip(&reply, prefix)
	}
	return reply
}

func (e *evaluation) strip(reply *dropin.ScriptReply, prefix string) {
	for i := range reply.Items {
		e.strip(&reply.Items[i], prefix)
	}
	if key, ok := strings.CutPrefix(reply.Text, prefix); ok && reply.Kind == dropin.KindBulk && slices.Contains(e.given.Keys, key) {
		reply.Text = key
	}
}

func (e *evaluation) effect() redlock.ScriptEffect {
	switch e.class.Op {
	case dropin.Release:
		return redlock.ScriptReleases
	case dropin.Extend:
		return redlock.ScriptExtends
	case dropin.ExtendAdd:
		return redlock.ScriptAdds
	}
	return redlock.ScriptForces
}

// acquire replies with the answer of the masters whose votes decided.
func (e *evaluation) acquire(s *redlock.Script, locks []redlock.Key, token redlock.Token, ttl time.Duration) {
	answers := &redlock.ScriptAnswers{}
	s.Tokens, s.Answers = e.tokens(), answers
	request := redlock.LockRequest{DB: e.db, Key: locks[0], More: locks[1:], TTL: ttl, Token: token, Script: s}
	e.handlers.startAcquire(e.call, request, e.watch,
		func() commands.Reply { return ofDropin(e.answer(answers.Yes)) },
		func() commands.Reply {
			if answers.HasNo {
				return ofDropin(e.answer(answers.No))
			}
			return e.predicted(dropin.HeldByOther)
		})
}

// release is for scripts that do what DUNLOCK does: all releases of a flush are one
// command to a master, whereas every text would be one of its own.
func (e *evaluation) release(r redlock.UnlockRequest) {
	e.handlers.release(e.call, r, func(was bool, err error) {
		if was || err != nil {
			e.released(was, err)
		} else {
			checkKind(e.handlers.deps.RedisCompat, r.DB, r.Key, func(err error) { e.released(false, err) })
		}
	})
}

func (e *evaluation) released(was bool, err error) {
	e.watch.Stop(was, err)
	switch {
	case err != nil:
		e.call.Reply(commands.Failure(err))
	case was:
		e.call.Reply(e.predicted(dropin.HeldBySelf))
	default:
		e.call.Reply(e.predicted(dropin.Free))
	}
}

// extendBy reads first whether the lease would become too long.
func (e *evaluation) extendBy(s *redlock.Script, locks []redlock.Key, token redlock.Token, more time.Duration) {
	maxLeft := e.handlers.deps.MaxTTL + e.handlers.deps.MasterTimeout
	e.handlers.deps.RedisCompat.View(nil, e.db, locks[0], func(v redlock.View, err error) {
		switch {
		case err != nil:
			e.watch.Stop(false, err)
			e.call.Reply(commands.Failure(err))
		case v.Kind != "none" && v.Left < redlock.Endless && v.Left+more > maxLeft:
			e.call.Reply(commands.Error("ERR", e.refuse("%d ms are left of the lease, with %d ms more it would exceed max-ttl, %d ms (--max-ttl); replace what is left instead of adding to it",
				v.Left.Milliseconds(), more.Milliseconds(), e.handlers.deps.MaxTTL.Milliseconds()).Error()))
		default:
			e.call.Batch = nil // it has been sent
			e.run(redlock.ScriptRequest{Script: s, Effect: redlock.ScriptAdds, Keys: locks, Token: token, TTL: more}, func(bool) {})
		}
	})
}

// force deletes or overwrites locks, whoever holds them. An overwritten one takes a slot of the
// user's quota, as with SET XX.
func (e *evaluation) force(r redlock.ScriptRequest) {
	users := e.handlers.deps.Users
	slots := make([]access.Slot, len(r.Keys))
	for i, key := range r.Keys {
		if e.class.Op == dropin.Discard {
			break
		}
		var err error
		if slots[i], err = users.Reserve(e.call.Rights(), access.HeldKey{DB: e.db, Key: key}); err != nil {
			for _, slot := range slots[:i] {
				slot.Free()
			}
			e.watch.Stop(false, err)
			e.call.Reply(commands.Error("TRYLATER", err.Error()))
			return
		}
	}
	e.run(r, func(yes bool) {
		for i, slot := range slots {
			if !yes {
				slot.Free()
				continue
			}
			at := access.HeldKey{DB: e.db, Key: r.Keys[i]}
			users.Changed(at, 0) // for any holder
			slot.Fill(at, r.Token, r.TTL)
		}
	})
}

// run is for everything that takes no lock. after is called before the reply.
func (e *evaluation) run(r redlock.ScriptRequest, after func(yes bool)) {
	users, fences := e.handlers.deps.Users, &e.handlers.fences
	r.DB, r.Partly = e.db, e.class.Prefix > 0
	e.handlers.deps.RedisCompat.RunScript(e.call.Batch, r, func(o redlock.ScriptOutcome, err error) {
		after(err == nil && o.Yes)
		e.watch.Stop(o.Yes, err)
		e.saw(r, o, err)
		switch {
		case err != nil:
			e.call.Reply(commands.Failure(err))
			return
		case !o.Replied:
			e.call.Reply(e.predicted(dropin.Free))
			return
		case r.Effect == redlock.ScriptReleases:
			for _, key := range r.Keys {
				users.ReleasedKey(r.DB, key, r.Token)
			}
		case o.Yes && r.Effect != redlock.ScriptForces:
			fences.prolong(&o.Grant)
			for _, key := range r.Keys {
				users.ProlongedKey(r.DB, key, r.Token, o.Grant.Validity())
			}
		}
		e.call.Reply(ofDropin(e.answer(o.Reply)))
	})
}

// saw notes what the reply shows of the keys.
func (e *evaluation) saw(r redlock.ScriptRequest, o redlock.ScriptOutcome, err error) {
	for _, key := range r.Keys {
		switch {
		case err != nil:
			e.call.Saw(key, redlock.Seen{}, err)
		case o.Yes && (r.Effect == redlock.ScriptReleases || r.Token == ""):
			e.call.Freed(key)
		case o.Yes && r.Effect == redlock.ScriptForces:
			e.call.SawHeld(key, r.Token, 0)
		case o.Yes:
			e.call.SawHeld(key, r.Token, o.Grant.Validity())
		}
	}
}
