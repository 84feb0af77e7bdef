// Fingerprint: the settings on which all daemons of a group of masters must agree.

package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// formatVersion changes whenever daemons of two versions must not share
// masters, because scripts or keys differ.
const formatVersion = "v1"

// fingerprint names everything on which two daemons on the same masters must agree.
// It is readable, so that a refusal can name the difference.
// It is the same for all masters; see forMaster.
func fingerprint(o *Options, db int) string {
	names := make([]string, 0, len(o.Masters))
	for _, m := range o.Masters {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return strings.Join([]string{
		"format=" + formatVersion,
		"group=" + o.Group,
		"db=" + strconv.Itoa(db),
		"max-ttl=" + strconv.FormatInt(o.MaxTTL.Milliseconds(), 10),
		"max-keep=" + strconv.FormatInt(o.MaxKeep.Milliseconds(), 10),
		"masters=" + strconv.Itoa(len(names)) + "-" + hex.EncodeToString(sum[:8]),
	}, "/")
}

// Fingerprint is the text of these options for one database of one master.
func (o *Options) Fingerprint(db int, name string) string { return forMaster(fingerprint(o, db), name) }

// forMaster binds it to one master: a copy of another master's memory, as a
// replica or a restored file has it, never votes in its place.
func forMaster(fingerprint, name string) string {
	return fingerprint + "/master=" + url.PathEscape(name)
}
