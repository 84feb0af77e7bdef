// Configuration: the masters, limits and key prefix of a group, and its epoch.

package admission

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/wire"
)

// ConfigurationKey is a hash on every master: a group's name, and the texts of its
// configurations. It has no key prefix, so that daemons with different ones meet there.
const ConfigurationKey = "redlockd:configuration"

// Configuration is one state of a group. Each change of it has the next epoch.
type Configuration struct {
	Epoch           int64
	Format          string
	Group           string
	Prefixes        []string // of keys; a daemon serves one of them, and the group's own keys have the first one
	MaxTTL, MaxKeep time.Duration
	Masters         []wire.Master // by name; with network and address only
	Slots           string        // of one of several groups, see package slots; "" = all

	// MapVersion counts the changes of the slots over all groups: of two groups that have a slot by
	// their configurations, the one with the higher version has it. 0 = as at the start.
	MapVersion int64
	// Leaving are slots that this group has given up, and To is the group that may take them. "" = none.
	Leaving, To string
	// LeftAt is the MapVersion of the change that gave them up. A later one, of other slots, keeps it.
	LeftAt int64
}

// String is the text on the masters: one line without control characters.
func (c *Configuration) String() string {
	masters := make([]string, len(c.Masters))
	for i, m := range c.Masters {
		masters[i] = url.QueryEscape(m.Name) + "@" + url.QueryEscape(m.Network) + "@" + url.QueryEscape(m.Address)
	}
	text := fmt.Sprintf("epoch=%d format=%s group=%s key-prefix=%s max-ttl=%d max-keep=%d masters=%s", c.Epoch, c.Format, url.QueryEscape(c.Group),
		EscapePrefixes(c.Prefixes), c.MaxTTL.Milliseconds(), c.MaxKeep.Milliseconds(), strings.Join(masters, ","))
	if c.Slots != "" {
		text += " slots=" + url.QueryEscape(c.Slots)
	}
	if c.MapVersion != 0 {
		text += " map=" + strconv.FormatInt(c.MapVersion, 10)
	}
	if c.Leaving != "" {
		text += " leaving=" + url.QueryEscape(c.Leaving) + "@" + url.QueryEscape(c.To) + "@" + strconv.FormatInt(c.LeftAt, 10)
	}
	return text
}

// EscapePrefixes is a list of key prefixes in the text.
func EscapePrefixes(prefixes []string) string {
	escaped := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		escaped[i] = url.QueryEscape(prefix)
	}
	return strings.Join(escaped, ",")
}

// SameSettings reports whether two configurations differ by nothing but what a change can put in
// force while the daemons serve: the masters, the key prefixes behind the first one, and the slots.
func (c *Configuration) SameSettings(other *Configuration) bool {
	return c.settings() == other.settings()
}

func (c *Configuration) settings() string {
	s := *c
	s.Epoch, s.Masters, s.Prefixes = 0, nil, s.Prefixes[:1]
	s.Slots, s.MapVersion, s.Leaving, s.To, s.LeftAt = "", 0, "", "", 0
	return s.String()
}

// SameSlots compares the slots that the groups serve, whatever has changed them.
func (c *Configuration) SameSlots(other *Configuration) bool { return c.Slots == other.Slots }

// SameLists compares the masters and the key prefixes.
func (c *Configuration) SameLists(other *Configuration) bool {
	return c.SameMasters(other) && slices.Equal(c.Prefixes, other.Prefixes)
}

// Mark names the configuration in identities: its epoch and a hash of its text.
func (c *Configuration) Mark() string {
	sum := sha256.Sum256([]byte(c.String()))
	return strconv.FormatInt(c.Epoch, 10) + "-" + hex.EncodeToString(sum[:8])
}

// Names lists the masters, for people, and several key prefixes as the option that has them. The
// logins and certificates are not there; pool.Options has them.
func (c *Configuration) Names() string {
	names := make([]string, len(c.Masters))
	for i, m := range c.Masters {
		names[i] = m.String()
	}
	text := strings.Join(names, ",")
	if len(c.Prefixes) > 1 {
		text += " --key-prefixes " + strings.Join(c.Prefixes, ",")
	}
	return text
}

// MapText is the slots of the configuration, for people.
func (c *Configuration) MapText() string {
	text := cmp.Or(c.Slots, "all")
	if c.Leaving != "" {
		text += "; " + c.Leaving + " leave for group " + c.To
	}
	return text
}

// SameMasters compares the names: daemons may reach a master under different addresses.
func (c *Configuration) SameMasters(other *Configuration) bool {
	return slices.EqualFunc(c.Masters, other.Masters, func(x, y wire.Master) bool { return x.Name == y.Name })
}

func parseConfiguration(text string) (*Configuration, error) {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, " ") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	bad := false
	number := func(digits string) int64 {
		n, err := strconv.ParseInt(digits, 10, 64)
		bad = bad || err != nil
		return n
	}
	plain := func(escaped string) string {
		text, err := url.QueryUnescape(escaped)
		bad = bad || err != nil
		return text
	}
	leaving, to, _ := strings.Cut(fields["leaving"], "@")
	to, leftAt, _ := strings.Cut(to, "@")
	c := &Configuration{
		Epoch: number(fields["epoch"]), Format: fields["format"], Group: plain(fields["group"]),
		MaxTTL: time.Duration(number(fields["max-ttl"])) * time.Millisecond, MaxKeep: time.Duration(number(fields["max-keep"])) * time.Millisecond,
		Slots: plain(fields["slots"]), Leaving: plain(leaving), To: plain(to),
	}
	if fields["map"] != "" {
		c.MapVersion = number(fields["map"])
	}
	if fields["leaving"] != "" {
		c.LeftAt = number(leftAt)
	}
	for prefix := range strings.SplitSeq(fields["key-prefix"], ",") {
		c.Prefixes = append(c.Prefixes, plain(prefix))
	}
	for one := range strings.SplitSeq(fields["masters"], ",") {
		parts := strings.Split(one, "@")
		if len(parts) != 3 {
			bad = true
			break
		}
		c.Masters = append(c.Masters, wire.Master{Name: plain(parts[0]), Network: plain(parts[1]), Address: plain(parts[2])})
	}
	if bad || c.String() != text {
		return nil, fmt.Errorf("the configuration %q is not of the form epoch= format= group= key-prefix= max-ttl= max-keep= masters= [slots=] [map=] [leaving=]", text)
	}
	return c, nil
}

// StoredConfiguration is the value of a group's field of ConfigurationKey.
type StoredConfiguration struct {
	At      int64          // µs of the master's clock when its identity got this configuration
	Now     *Configuration // nil if it is not readable
	Former  *Configuration // that it replaced in place; nil for none
	InForce bool           // a quorum of the former list carried it
}

// ParseStored reads the value: the time, a line for each configuration, and whether it is in force.
func ParseStored(value string) (s StoredConfiguration) {
	lines := strings.Split(value, "\n")
	if len(lines) != 4 {
		return s
	}
	s.At, _ = strconv.ParseInt(lines[0], 10, 64)
	s.Now, _ = parseConfiguration(lines[1])
	s.Former, _ = parseConfiguration(lines[2])
	s.InForce = lines[3] == inForce
	return s
}

const inForce = "in force"

// Texts are the lines of the value after the time.
func (s StoredConfiguration) Texts() string {
	former, state := "", ""
	if s.Former != nil {
		former = s.Former.String()
	}
	if s.InForce {
		state = inForce
	}
	return s.Now.String() + "\n" + former + "\n" + state
}

// SplitMark splits a fingerprint into what it holds without the configuration's mark, and the mark.
func SplitMark(fingerprint string) (rest, mark string) {
	before, after, found := strings.Cut(fingerprint, "/epoch=")
	if !found {
		return fingerprint, ""
	}
	mark, after, _ = strings.Cut(after, "/")
	return before + "/" + after, mark
}

// SameGroup reports whether two fingerprints are of one format and group.
func SameGroup(a, b string) bool {
	a, _, found := strings.Cut(a, "/db=")
	b, _, _ = strings.Cut(b, "/db=")
	return found && a == b
}

// SameDB reports whether two fingerprints are of one database. SWAPDB brings those of another one.
func SameDB(a, b string) bool {
	_, a, _ = strings.Cut(a, "/db=")
	_, b, _ = strings.Cut(b, "/db=")
	a, _, _ = strings.Cut(a, "/")
	b, _, _ = strings.Cut(b, "/")
	return a == b
}

// EpochOf is the epoch of a mark, 0 for none.
func EpochOf(mark string) int64 {
	number, _, _ := strings.Cut(mark, "-")
	epoch, _ := strconv.ParseInt(number, 10, 64)
	return epoch
}

// FingerprintOf is the fingerprint in what stands at a seal: an identity, or one that was
// invalidated. "" for none.
func FingerprintOf(seal string) string {
	if print, retired := strings.CutPrefix(seal, "retired "); retired {
		return print
	}
	if i, err := ParseIdentity(seal); err == nil {
		return i.Fingerprint
	}
	return ""
}
