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
		return scriptError(r.Text)
	case dropin.KindInt:
		return commands.Int(r.Int)
	case dropin.KindBulk:
		return textOrStatus(r.Text)
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

// textOrStatus is a text that may have been a status: the masters' connection does
// not show which. OK is a status wherever it comes from SET.
func textOrStatus(s string) commands.Reply {
	if s == "OK" {
		return commands.OK
	}
	return commands.Bulk(s)
}

// scriptError has a code in front, as all errors do.
func scriptError(s string) commands.Reply {
	for i := range len(s) {
		if s[i] == ' ' && i > 0 {
			break
		}
		if s[i] < 'A' || s[i] > 'Z' {
			return commands.Error("ERR", s)
		}
	}
	return commands.Reply{Kind: commands.KindError, Text: s}
}
