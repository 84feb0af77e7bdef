// SET and the compare-and-delete commands of clients, which write options in any order and
// case.

package dropin

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"redlockd/proxy/resp"

	"github.com/zeebo/xxh3"
)

// Condition is the condition under which a SET writes.
type Condition uint8

const (
	Always           Condition = iota
	IfAbsent                   // NX
	IfPresent                  // XX
	IfEqual                    // IFEQ: the operand is a value
	IfNotEqual                 // IFNE: a value
	IfDigestEqual              // IFDEQ: the digest of a value
	IfDigestNotEqual           // IFDNE: the digest of a value
)

var (
	setUnits      = map[string]Unit{"PX": Milliseconds, "EX": Seconds, "PXAT": UnixMilliseconds, "EXAT": UnixSeconds}
	setConditions = map[string]Condition{"NX": IfAbsent, "XX": IfPresent, "IFEQ": IfEqual}
)

// comparisons are the conditions with an operand.
var comparisons = map[string]Condition{"IFEQ": IfEqual, "IFNE": IfNotEqual, "IFDEQ": IfDigestEqual, "IFDNE": IfDigestNotEqual}

// Negative reports whether a client can meet the condition without the holder's value.
func (c Condition) Negative() bool { return c == IfNotEqual || c == IfDigestNotEqual }

// Holds reports whether a key with this value meets a comparison with the operand.
func (c Condition) Holds(value, operand string) bool {
	switch c {
	case IfEqual:
		return value == operand
	case IfNotEqual:
		return value != operand
	case IfDigestEqual:
		return strings.EqualFold(Digest(value), operand)
	case IfDigestNotEqual:
		return !strings.EqualFold(Digest(value), operand)
	}
	return false
}

// Digest is the reply of DIGEST: the XXH3 hash of 64 bits.
func Digest(value string) string { return fmt.Sprintf("%016x", xxh3.HashString(value)) }

// checkOperand refuses what Redis refuses: a digest of another length.
func (c Condition) checkOperand(operand string) error {
	if (c == IfDigestEqual || c == IfDigestNotEqual) && len(operand) != digestLength {
		return errDigest
	}
	return nil
}

const digestLength = 16

// ExpiryKind is the effect of a SET on the expiry.
type ExpiryKind uint8

const (
	Persistent ExpiryKind = iota
	After                 // EX, PX
	At                    // EXAT, PXAT
	KeepExpiry            // KEEPTTL
)

// Expiry is the time at which a key expires.
type Expiry struct {
	Kind ExpiryKind
	MS   int64 // from now for After, since 1970 for At; always above 0
}

// SetRequest is a SET whose words are valid.
type SetRequest struct {
	Key, Value string
	When       Condition
	Operand    string // of a comparison
	Expiry     Expiry
	Get        bool // reply with the previous value
}

// Error texts of Redis, which client libraries match.
var (
	errSyntax     = errors.New("syntax error")
	errNotInteger = errors.New("value is not an integer or out of range")
	errExpire     = errors.New("invalid expire time in 'set' command")
	errExpireMany = errors.New("invalid expire time in 'msetex' command")
	errDigest     = errors.New("must be exactly 16 hexadecimal characters")
	errCondition  = redisText("Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
	errNumkeys    = errors.New("invalid numkeys value")
	errPairs      = errors.New("wrong number of key-value pairs")
)

// redisText is an error with capitals and full stops.
type redisText string

func (t redisText) Error() string { return string(t) }

func errArity(name string) error {
	return fmt.Errorf("wrong number of arguments for '%s' command", name)
}

// ParseSet reads SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest |
// IFDNE digest] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]; words[0] is SET itself. Errors have the texts of
// Redis, without the ERR. A time is any int64 above 0 that fits into ms.
func ParseSet(words []string) (SetRequest, error) {
	if len(words) < 3 {
		return SetRequest{}, errArity("set")
	}
	r := SetRequest{Key: words[1], Value: words[2]}
	expiry, time := "", "" // the option of the expiry, and its value
	for i := 3; i < len(words); i++ {
		name, value := upper(words[i]), ""
		condition, compares := comparisons[name]
		if !compares {
			condition = setConditions[name]
		}
		_, timed := setUnits[name]
		if timed || compares {
			if i++; i == len(words) {
				return SetRequest{}, errSyntax
			}
			value = words[i]
		}
		switch {
		case condition != Always:
			// Redis accepts a repeated condition, but no two different ones.
			if r.When != Always && (r.When != condition || compares) {
				return SetRequest{}, errSyntax
			}
			r.When, r.Operand = condition, value
		case name == "GET":
			r.Get = true
		case !timed && name != "KEEPTTL", expiry != "" && expiry != name:
			return SetRequest{}, errSyntax
		default:
			expiry, time = name, value
		}
	}
	if err := r.expire(expiry, time); err != nil {
		return r, err
	}
	return r, r.When.checkOperand(r.Operand)
}

// SetManyRequest is an MSETEX whose words are valid.
type SetManyRequest struct {
	Keys, Values []string
	When         Condition // Always, IfAbsent or IfPresent
	Expiry       Expiry
}

// ParseSetMany reads MSETEX numkeys key value [key value ...] with the options of SET but
// for GET and the comparisons.
func ParseSetMany(words []string) (SetManyRequest, error) {
	if len(words) < 4 {
		return SetManyRequest{}, errArity("msetex")
	}
	n, ok := resp.ParseInteger(words[1])
	if !ok || n < 1 || n > math.MaxInt32 {
		return SetManyRequest{}, errNumkeys
	}
	pairs := words[2:]
	if n > int64(len(pairs)/2) {
		return SetManyRequest{}, errPairs
	}
	options, err := ParseSet(append([]string{"SET", "", ""}, pairs[2*n:]...))
	switch {
	case errors.Is(err, errExpire):
		return SetManyRequest{}, errExpireMany
	case err != nil:
		return SetManyRequest{}, err
	case options.Get, options.When > IfPresent:
		return SetManyRequest{}, errSyntax
	}
	r := SetManyRequest{When: options.When, Expiry: options.Expiry}
	for i := range n {
		r.Keys, r.Values = append(r.Keys, pairs[2*i]), append(r.Values, pairs[2*i+1])
	}
	return r, nil
}

// expire runs last: Redis checks the words before it checks the time.
func (r *SetRequest) expire(option, value string) error {
	unit := setUnits[option]
	switch {
	case option == "":
		return nil
	case option == "KEEPTTL":
		r.Expiry.Kind = KeepExpiry
		return nil
	case unit.absolute():
		r.Expiry.Kind = At
	default:
		r.Expiry.Kind = After
	}
	n, ok := resp.ParseInteger(value)
	if !ok {
		return errNotInteger
	}
	if r.Expiry.MS, ok = unit.milliseconds(n); !ok {
		return errExpire
	}
	return nil
}

// DeleteRequest is a DELEX or DELIFEQ whose words are valid.
type DeleteRequest struct {
	Key     string
	When    Condition // Always or a comparison
	Operand string
}

// ParseDelete reads DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] and
// DELIFEQ key value.
func ParseDelete(words []string) (DeleteRequest, error) {
	name := strings.ToLower(words[0]) // the caller found the command by this name
	if name == "delifeq" {
		if len(words) != 3 {
			return DeleteRequest{}, errArity(name)
		}
		return DeleteRequest{Key: words[1], When: IfEqual, Operand: words[2]}, nil
	}
	if len(words) == 2 {
		return DeleteRequest{Key: words[1]}, nil
	}
	if len(words) != 4 {
		return DeleteRequest{}, errArity(name)
	}
	when, ok := comparisons[upper(words[2])]
	if !ok {
		return DeleteRequest{}, errCondition
	}
	return DeleteRequest{Key: words[1], When: when, Operand: words[3]}, when.checkOperand(words[3])
}

// upper changes ASCII letters only: strings.ToUpper also turns the dotless ı into an I, and the
// long ſ into an S.
func upper(word string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, word)
}
