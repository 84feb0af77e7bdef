// Answers of masters and of package dropin, as replies to clients.

package rediscompat

import (
	"redlockd/commands"
	"redlockd/commands/dropin"
	"redlockd/pool"
)

// ofDropin is an answer for the client.
func ofDropin(r dropin.ScriptReply) commands.Reply {
	switch r.Kind {
	case dropin.KindStatus:
		return commands.Simple(r.Text)
	case dropin.KindError:
		return commands.Reply{Kind: commands.KindError, Text: r.Text}
	case dropin.KindInt:
		return commands.Int(r.Int)
	case dropin.KindBulk:
		return commands.Bulk(r.Text)
	case dropin.KindArray:
		items := make([]commands.Reply, len(r.Items))
		for i := range r.Items {
			items[i] = ofDropin(r.Items[i])
		}
		return commands.Array(items...)
	}
	return commands.Nil
}

// ofMaster is a master's answer in the terms of package dropin.
func ofMaster(r pool.Reply) dropin.ScriptReply {
	switch {
	case r.Err != nil:
		return dropin.ScriptReply{Kind: dropin.KindError, Text: r.Err.Error()}
	case r.Kind == pool.ReplyInt:
		return dropin.ScriptReply{Kind: dropin.KindInt, Int: r.Int}
	case r.Kind == pool.ReplyString && r.Str == "OK": // the masters' connection does not show a status
		return dropin.ScriptReply{Kind: dropin.KindStatus, Text: r.Str}
	case r.Kind == pool.ReplyString:
		return dropin.ScriptReply{Kind: dropin.KindBulk, Text: r.Str}
	case r.Kind == pool.ReplyArray:
		list := dropin.ScriptReply{Kind: dropin.KindArray}
		for _, item := range r.Items {
			list.Items = append(list.Items, ofMaster(item))
		}
		return list
	}
	return dropin.ScriptReply{}
}
