// Fingerprint: the settings on which all daemons of a group of masters must agree.

package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"redlockd/pool/admission"
)

// formatVersion changes whenever daemons of two versions must not share
// masters, because scripts or keys differ.
const formatVersion = "v2"

// settings names everything on which two daemons on the same masters must agree.
// It is readable, so that a refusal can name the difference.
// It is the same for all masters and epochs; see Fingerprint.
func (o *Options) settings(db int) string {
	names := make([]string, 0, len(o.Masters))
	for _, m := range o.Masters {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	lists := strings.Join(names, "\n")
	if len(o.Prefixes) > 1 {
		lists += "\x00" + admission.EscapePrefixes(o.Prefixes)
	}
	sum := sha256.Sum256([]byte(lists))
	parts := []string{
		"format=" + formatVersion,
		"group=" + o.Group,
		"db=" + strconv.Itoa(db),
		"max-ttl=" + strconv.FormatInt(o.MaxTTL.Milliseconds(), 10),
		"max-keep=" + strconv.FormatInt(o.MaxKeep.Milliseconds(), 10),
		"masters=" + strconv.Itoa(len(names)) + "-" + hex.EncodeToString(sum[:8]),
	}
	if o.Slots != "" { // a group with all slots keeps the text that it had before there were several
		parts = append(parts, "slots="+o.Slots)
	}
	return strings.Join(parts, "/")
}

// Fingerprint is the text of these options for one database of one master, with the mark of
// the group's configuration. The master's name binds it: a copy of another master's
// memory, as a replica or a restored file has it, never votes in its place.
func (o *Options) Fingerprint(db int, mark, name string) string {
	return o.settings(db) + "/epoch=" + mark + "/master=" + url.PathEscape(name)
}

// prefixes are all key prefixes of the group.
func (o *Options) prefixes() []string {
	if len(o.Prefixes) == 0 {
		return []string{o.KeyPrefix}
	}
	return o.Prefixes
}

// GroupKey is the name on the masters of a key that all daemons of the group share.
func (o *Options) GroupKey(name string) string { return o.prefixes()[0] + "redlockd:" + name }

// Configuration returns the configuration of these options. Daemons may reach a master under different
// addresses: only names and limits are compared.
func (o *Options) Configuration(epoch int64) *admission.Configuration {
	c := &admission.Configuration{
		Epoch: epoch, Format: formatVersion, Group: o.Group, Prefixes: o.prefixes(), MaxTTL: o.MaxTTL, MaxKeep: o.MaxKeep,
		Slots: o.Slots, MapVersion: o.MapVersion, Leaving: o.Leaving, To: o.To, LeftAt: o.LeftAt,
	}
	for _, m := range o.Masters {
		c.Masters = append(c.Masters, Master{Name: m.Name, Network: m.Network, Address: m.Address})
	}
	slices.SortFunc(c.Masters, func(a, b Master) int { return strings.Compare(a.Name, b.Name) })
	return c
}
