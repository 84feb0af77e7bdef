// Admission: the script that finds or begins the incarnation of a master, and its answer.

package pool

import (
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

//go:embed scripts/admit.lua
var admitScript string

// admission is what the admission script decided.
type admission struct {
	incarnation *Incarnation
	score       int64
}

// admissionRequest is what the script receives.
type admissionRequest struct {
	clock      int64 // the group's clock, µs
	durable    bool
	invalidate string
	bootstrap  bool
	floor      int64
}

func (g *Group) admit(link Link, name string, r admissionRequest) (admission, error) {
	replies := link.Exchange([]Command{{Args: []string{
		"EVAL", admitScript, "1", g.sealKey,
		strconv.FormatInt(r.clock, 10), strconv.FormatInt(clock.Micros(maxSkew), 10), bit(r.durable),
		newIncarnationID(), forMaster(g.fingerprint, name), r.invalidate, bit(r.bootstrap), strconv.FormatInt(r.floor, 10),
	}}}, nil)
	if err := wire.ExchangeErr(replies, 1); err != nil {
		return admission{}, err
	}
	return g.readAdmission(name, replies[0])
}

// delayed reports whether the duration of an admission explains the refusal: the
// script ran up to that much later than the clock in its arguments was read.
func delayed(err error, took time.Duration) bool {
	var reason *unfit
	return errors.As(err, &reason) && reason.ahead > 0 && reason.ahead-clock.Micros(took) <= clock.Micros(maxSkew)
}

func (g *Group) readAdmission(name string, r Reply) (admission, error) {
	if r.Err != nil {
		return admission{}, unfitf("the admission script is refused: %v", r.Err)
	}
	if len(r.Items) < 2 {
		return admission{}, unfitf("the admission script answered something unexpected")
	}
	detail := r.Items[1].Str
	switch r.Items[0].Str {
	case "OK":
		if len(r.Items) != 4 {
			return admission{}, unfitf("the admission script answered something unexpected")
		}
		incarnation, err := parseIdentity(detail)
		score, ok := r.Items[3].Number()
		if err != nil || !ok {
			return admission{}, unfitf("the admission script answered something unexpected: %v", err)
		}
		return admission{incarnation, score}, nil
	case "REPLICA":
		return admission{}, unfitf("is a %s: masters are independent, %s", detail, emptyReplica)
	case "PROMOTED":
		return admission{}, unfitf("is a promoted replica (second_repl_offset %s): it may lack the last writes of its former master; restart it empty", detail)
	case "CLOCK":
		us, _ := strconv.ParseInt(detail, 10, 64)
		reason := fmt.Sprintf("its clock is %+d ms off the other masters' median, %d ms allowed: synchronise it", us/1000, maxSkew.Milliseconds())
		return admission{}, &unfit{reason, us}
	case "FINGERPRINT":
		return admission{}, unfitf("serves daemons with other settings: %s", difference(forMaster(g.fingerprint, name), detail))
	case "FOREIGN":
		return admission{}, unfitf("the key %s in database %d holds %s that redlockd did not write: delete it on this master, or give all daemons another --key-prefix", g.sealKey, g.db, withArticle(detail))
	}
	return admission{}, unfitf("the admission script answered %q", r.Items[0].Str)
}

// withArticle puts "a" before the answer of TYPE.
func withArticle(kind string) string {
	if strings.HasPrefix(kind, "a ") {
		return kind
	}
	return "a " + kind
}

// load loads every script into the master, so that EVALSHA never fails.
func load(link Link, scripts []string) error {
	if len(scripts) == 0 {
		return nil
	}
	commands := make([]Command, len(scripts))
	for i, text := range scripts {
		commands[i].Set("SCRIPT", "LOAD", text)
	}
	replies := link.Exchange(commands, nil)
	if err := wire.ExchangeErr(replies, len(commands)); err != nil {
		return err
	}
	for _, r := range replies {
		if r.Err != nil {
			return unfitf("SCRIPT LOAD is refused: %v", r.Err)
		}
	}
	return nil
}

func newIncarnationID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

func bit(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// quarantineLocked is how long a quarantined master still has to wait, 0 if it is not.
func (l *lane) quarantineLocked() time.Duration {
	age := clock.Micros(l.group.pool.options.age())
	left := l.conn.incarnation.Base + age - l.est.At(l.group.now())
	return max(0, time.Duration(left)*time.Microsecond)
}

func quarantineText(wait time.Duration) string {
	return fmt.Sprintf("its memory is new, votes in %.1fs", wait.Seconds())
}
