// The only command of a transaction.

package commands

// RunAlone does a queued command as the only one of a transaction. The reply is a list of its reply.
func (d *Deps) RunAlone(c *Call, words []string) {
	row := find(d.commands.byName, words[0])
	own := *c
	own.Args, own.options, own.Completer = words, row.options, onlyReply{c.Completer}
	own.track(row)
	if mistake := row.Handle(&own); mistake != nil {
		own.Reply(row.refuse(mistake))
	}
}

// onlyReply makes a list of a reply.
type onlyReply struct{ Completer }

func (o onlyReply) Complete(r Reply) { o.Completer.Complete(Array(r)) }

func (o onlyReply) CompleteDeferred(d DeferredReply) { o.Completer.CompleteDeferred(onlyDeferred{d}) }

type onlyDeferred struct{ DeferredReply }

func (o onlyDeferred) Reply() Reply { return Array(o.DeferredReply.Reply()) }
