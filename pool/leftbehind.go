// Left behind: what a daemon reports if the masters carry another configuration than its own.

package pool

import (
	"cmp"
	"fmt"

	"redlockd/pool/admission"
)

// mapHint helps a daemon that cannot follow because the slots of its group have changed; "" if that
// is not the reason.
func mapHint(o Options, next *admission.Configuration) string {
	if o.OnConfiguration != nil || o.Configuration(next.Epoch).SameSlots(next) {
		return ""
	}
	return "slots have moved to another group: start this daemon again with the [[group]] tables of all groups in its file"
}

// followHint names what keeps a daemon from following, "" if it is something else.
func followHint(o *Options, next *admission.Configuration) string {
	hint := mapHint(*o, next)
	if address := o.unnamed(next); hint == "" && address != "" {
		hint = "the masters' password is sent to no address that only a record on the masters names: allow " + address + " by --follow-to, or start this daemon again with the new list"
	}
	return hint
}

// isMistaken reports whether the group has the masters of these options and other limits, and the
// daemon never had a configuration: rather its options are wrong than that it missed a change.
func (o *Options) isMistaken(mark string, next *admission.Configuration) bool {
	own := o.Configuration(0)
	return mark == "" && own.SameLists(next) && !own.SameSettings(next)
}

// reportNext logs that a quorum carries another configuration than the daemon's, which has this mark.
func (o *Options) reportNext(db int, mark string, next *admission.Configuration) {
	if o.isMistaken(mark, next) {
		o.Logger.Warn("settings of this daemon are not those of the group", "db", db, "epoch", next.Epoch,
			"hint", "the err of master does not vote has the difference: correct it and start this daemon again, or change the group by redlockd reconfigure")
		return
	}
	o.Logger.Warn("this daemon was left behind by a change of the group", "db", db,
		"epoch", admission.EpochOf(mark), "now", next.Epoch, "masters", o.Names(next), "slots", next.MapText(),
		"hint", cmp.Or(followHint(o, next), "it follows if only the masters or the slots differ; otherwise start it again with the settings of the others"))
}

// nextText names the configuration that replaced the daemon's, for people.
func (o *Options) nextText(mark string, next *admission.Configuration) string {
	if next == nil || o.isMistaken(mark, next) {
		return "" // the difference is all
	}
	text := fmt.Sprintf("; left behind: the masters have epoch %d: --masters %s", next.Epoch, o.Names(next))
	if hint := followHint(o, next); hint != "" {
		text += "; " + hint
	}
	return text
}
