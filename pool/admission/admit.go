// Admission: the scripts that find, begin or end the incarnation of a master, and their answers.

package admission

import (
	"cmp"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

//go:embed admit.lua
var admitScript string

//go:embed end.lua
var endScript string

// MaxSkew bounds the distance of a master's clock from the median at its admission. A new
// incarnation's register begins as far above the master's clock.
const MaxSkew = 500 * time.Millisecond

// Admission has the decision of the admission script.
type Admission struct {
	Incarnation *Incarnation
	Score       int64
	processes   string // see admit.lua
}

// LowestSince is the lowest register with which a process of the incarnation has begun since the one
// with this run_id: a later vote raises the register above what the process had lost.
func (a *Admission) LowestSince(run string) int64 {
	lowest := int64(math.MaxInt64)
	for rest := a.processes; ; {
		entry, after, whole := strings.Cut(rest, ";")
		id, score, _ := strings.Cut(entry, "=")
		if !whole || id == run {
			return lowest
		}
		if register, err := strconv.ParseInt(score, 10, 64); err == nil {
			lowest = min(lowest, register)
		}
		rest = after
	}
}

// Request has the arguments of the script.
type Request struct {
	SealKey     string
	DB          int
	Fingerprint string // of the settings, for this master

	Clock      int64 // the group's clock, µs
	Durable    bool
	Invalidate string
	Bootstrap  bool
	Floor      int64
	MinBase    int64 // µs; what other masters demand of their memory holds for a new one, too

	// Refusal is why a master that does not carry the configuration may not get it now; "" =
	// it may. The script does so at most MaxSkew after Clock, by the master's clock.
	Refusal   string
	Hint      string // why the configurations differ, and how this daemon gets that of the others, if that is known
	Older     bool   // the memory of Invalidate is older than what its master has answered
	Lost      bool   // that includes one that carries another change to the same epoch, which is lost
	Texts     string // of the configuration, see StoredTexts; "" if they are unknown
	Group     string
	KeyPrefix string
	Prefixes  []string // of the configuration
}

// Admit runs the script.
func Admit(link wire.Link, r Request) (Admission, error) {
	reply, err := wire.AskOne(link, "EVAL", admitScript, "2", r.SealKey, ConfigurationKey,
		strconv.FormatInt(r.Clock, 10), strconv.FormatInt(clock.Micros(MaxSkew), 10), Bit(r.Durable),
		NewIncarnationID(), r.Fingerprint, r.Invalidate, Bit(r.Bootstrap), strconv.FormatInt(r.Floor, 10), r.mayBegin(), strconv.FormatInt(r.MinBase, 10),
		r.Texts, r.Group, EscapePrefixes(r.Prefixes[:min(1, len(r.Prefixes))]), EscapePrefixes([]string{r.KeyPrefix}), Bit(r.Older))
	if err != nil {
		return Admission{}, err
	}
	return r.read(reply)
}

func (rt *Request) mayBegin() string {
	if rt.Lost && rt.Refusal == "" {
		return "2"
	}
	return Bit(rt.Refusal == "")
}

// Delayed reports whether the duration of an admission explains the refusal: the
// script ran up to that much later than the clock in its arguments was read.
func Delayed(err error, took time.Duration) bool {
	var reason *Unfit
	return errors.As(err, &reason) && reason.ahead > 0 && reason.ahead-clock.Micros(took) <= clock.Micros(MaxSkew)
}

// read reads the script's answer.
func (rt *Request) read(r wire.Reply) (Admission, error) {
	if r.Err != nil {
		return Admission{}, Unfitf("the admission script is refused: %v", r.Err)
	}
	if len(r.Items) < 2 {
		return Admission{}, Unfitf("the admission script answered something unexpected")
	}
	detail := r.Items[1].Str
	switch r.Items[0].Str {
	case "OK":
		if len(r.Items) != 5 {
			return Admission{}, Unfitf("the admission script answered something unexpected")
		}
		incarnation, err := ParseIdentity(detail)
		score, ok := r.Items[3].Number()
		if err != nil || !ok {
			return Admission{}, Unfitf("the admission script answered something unexpected: %v", err)
		}
		return Admission{incarnation, score, r.Items[4].Str}, nil
	case "REPLICA":
		return Admission{}, Unfitf("is a %s: masters are independent, %s", detail, emptyReplica)
	case "PROMOTED":
		return Admission{}, Unfitf("is a promoted replica (second_repl_offset %s): it may lack the last writes of its former master; restart it empty", detail)
	case "CLOCK":
		us, _ := strconv.ParseInt(detail, 10, 64)
		return Admission{}, &Unfit{ClockOff(us), us}
	case "FINGERPRINT":
		switch ours, mark := SplitMark(rt.Fingerprint); {
		case older(rt.Fingerprint, detail):
			return Admission{}, Unfitf("carries a former configuration of the group: %s", rt.Refusal)
		case mark == "" && detail != "" && ours == settingsOf(detail):
			return Admission{}, Unfitf("waits for the configuration of the group: %s", rt.Refusal)
		}
		return Admission{}, Unfitf("serves daemons with other settings: %s%s", Difference(rt.Fingerprint, detail), rt.Hint)
	case "BLANK":
		return Admission{}, Unfitf("is empty, and %s", rt.Refusal)
	case "OLDER":
		return Admission{}, Unfitf("%s, and %s", OlderText, rt.Refusal)
	case "PREFIX":
		return Admission{}, rt.otherPrefix(detail)
	case "FOREIGN":
		return Admission{}, Unfitf("the key %s in database %d holds %s that redlockd did not write: delete it on this master, or give all daemons another --key-prefix", rt.SealKey, rt.DB, "a "+detail)
	}
	return Admission{}, Unfitf("the admission script answered %q", r.Items[0].Str)
}

// older reports whether theirs is a former configuration of our group.
func older(ours, theirs string) bool {
	_, a := SplitMark(ours)
	_, b := SplitMark(theirs)
	return b != "" && EpochOf(b) < EpochOf(a) && groupOf(ours) == groupOf(theirs)
}

func settingsOf(fingerprint string) string {
	settings, _ := SplitMark(fingerprint)
	return settings
}

func groupOf(fingerprint string) string {
	group, _, _ := strings.Cut(fingerprint, "/db=")
	_, group, _ = strings.Cut(group, "/group=")
	return group
}

// otherPrefix is the reason if the group has other key prefixes than this daemon has.
func (rt *Request) otherPrefix(escaped string) error {
	listed, _ := url.QueryUnescape(strings.ReplaceAll(escaped, ",", url.QueryEscape(",")))
	all := strings.Split(listed, ",")
	switch {
	case slices.Contains(all, rt.KeyPrefix):
		return Unfitf("serves group %s with several key prefixes: give this daemon all of them: --key-prefixes %s", rt.Group, listed)
	case len(all) > 1 || len(rt.Prefixes) > 1:
		return Unfitf("serves group %s with the key prefixes %q, and this daemon's --key-prefix is %q: allowed are those; redlockd reconfigure --key-prefixes %s,%[3]s adds it", rt.Group, all, rt.KeyPrefix, listed)
	}
	return Unfitf("serves daemons of group %s whose --key-prefix is %q, and this daemon's is %q: locks would be held twice. "+
		"Give all daemons of the group the same; or list both, %[2]q first: --key-prefixes; or give this one another --group; or, if no daemon with the other prefix runs any more, delete %[4]s in database %[5]d on every master",
		rt.Group, listed, rt.KeyPrefix, ConfigurationKey, rt.DB)
}

// AgedAdvice names what helps a blank master with which no daemon begins, and its risk.
func AgedAdvice(master string) string {
	return fmt.Sprintf("run redlockd bootstrap --aged %s; it votes when it has its age. "+
		"If a redlockd reconfigure that this command missed has changed the group, two groups could grant one lock", master)
}

// ClockOff is the text about a clock that is too far off, by this many µs.
func ClockOff(us int64) string {
	return fmt.Sprintf("its clock is %+d ms off the other masters' median, %d ms allowed: synchronise it", us/1000, MaxSkew.Milliseconds())
}

// LoadScripts loads every script into the master.
func LoadScripts(link wire.Link, scripts []string) error {
	commands := make([]wire.Command, len(scripts))
	for i, text := range scripts {
		commands[i].Set("SCRIPT", "LOAD", text)
	}
	replies, err := wire.Ask(link, commands...)
	if err != nil {
		return err
	}
	for _, r := range replies {
		if r.Err != nil {
			return Unfitf("SCRIPT LOAD is refused: %v", r.Err)
		}
	}
	return nil
}

// Ended is an incarnation that EndIncarnations ended, in one database.
type Ended struct{ DB, Identity string }

// Databases lists those of the incarnations.
func Databases(all []Ended) string {
	dbs := make([]string, len(all))
	for i, e := range all {
		dbs[i] = e.DB
	}
	return strings.Join(dbs, ", ")
}

// EndIncarnations ends those of all databases of the server, because an operator replaced the
// master's files, or because an eviction policy may have removed locks.
func EndIncarnations(link wire.Link, sealKey string, replaced bool) ([]Ended, error) {
	reply, err := wire.AskOne(link, "EVAL", endScript, "2", sealKey, ConfigurationKey, Bit(replaced))
	if err = cmp.Or(err, reply.Err); err != nil {
		return nil, err
	}
	var all []Ended
	for _, item := range reply.Items {
		db, identity, _ := strings.Cut(item.Str, " ")
		all = append(all, Ended{db, identity})
	}
	return all, nil
}

func NewIncarnationID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// Bit is a truth value as the scripts receive it.
func Bit(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}
