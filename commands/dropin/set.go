// SET and the compare-and-delete commands of clients, which write options in any order and
// case.

package dropin

import (
	"errors"
	"fmt"
	"strings"
)

// Condition is the condition under which a SET writes.
type Condition uint8

const (
	Always    Condition = iota
	IfAbsent            // NX
	IfPresent           // XX
	IfEqual             // IFEQ
)

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
	Equal      string // for IfEqual
	Expiry     Expiry
	Get        bool // reply with the previous value
}

// Error texts of Redis, which client libraries match.
var (
	errSyntax     = errors.New("syntax error")
	errNotInteger = errors.New("value is not an integer or out of range")
	errExpire     = errors.New("invalid expire time in 'set' command")
)

func errArity(name string) error {
	return fmt.Errorf("wrong number of arguments for '%s' command", name)
}

// ParseSet reads SET key value [NX | XX | IFEQ value] [GET] [EX s | PX ms |
// EXAT s | PXAT ms | KEEPTTL]; words[0] is SET itself. Errors have the texts of
// Redis, without the ERR. A time is any int64 above 0 that fits into ms.
func ParseSet(words []string) (SetRequest, error) {
	if len(words) < 3 {
		return SetRequest{}, errArity("set")
	}
	r := SetRequest{Key: words[1], Value: words[2]}
	expiry, time := "", "" // the option of the expiry, and its value
	for i := 3; i < len(words); i++ {
		name, value := upper(words[i]), ""
		condition, conditional := setConditions[name]
		_, timed := setUnits[name]
		if timed || condition == IfEqual {
			if i++; i == len(words) {
				return SetRequest{}, errSyntax
			}
			value = words[i]
		}
		switch {
		case conditional:
			// Redis accepts a repeated condition, but no two different ones.
			if r.When != Always && (r.When != condition || condition == IfEqual) {
				return SetRequest{}, errSyntax
			}
			r.When, r.Equal = condition, value
		case name == "GET":
			r.Get = true
		case !timed && name != "KEEPTTL", expiry != "" && expiry != name:
			return SetRequest{}, errSyntax
		default:
			expiry, time = name, value
		}
	}
	err := r.expire(expiry, time)
	return r, err
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
	n, ok := parseInt(value)
	if !ok {
		return errNotInteger
	}
	if r.Expiry.MS, ok = unit.milliseconds(n); !ok {
		return errExpire
	}
	return nil
}

// DeleteRequest is a compare-and-delete whose words are valid.
type DeleteRequest struct{ Key, Equal string }

// ParseDeleteIfEqual reads DELEX key IFEQ value and DELIFEQ key value.
func ParseDeleteIfEqual(words []string) (DeleteRequest, error) {
	name := strings.ToLower(words[0]) // the caller found the command by this name
	if name == "delifeq" {
		if len(words) != 3 {
			return DeleteRequest{}, errArity(name)
		}
		return DeleteRequest{Key: words[1], Equal: words[2]}, nil
	}
	if len(words) != 4 {
		return DeleteRequest{}, errArity(name)
	}
	if upper(words[2]) != "IFEQ" {
		return DeleteRequest{}, errSyntax
	}
	return DeleteRequest{Key: words[1], Equal: words[3]}, nil
}

// upper changes ASCII letters only: strings.ToUpper also turns the dotless ı into an I,
// and the long ſ into an S.
func upper(word string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, word)
}
