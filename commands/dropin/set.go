// SET and the compare-and-delete commands of clients, which write options in any order and
// case.

package dropin

import (
	"errors"
	"fmt"
	"math"
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
)

func errArity(name string) error {
	return fmt.Errorf("wrong number of arguments for '%s' command", name)
}

func errExpire(name string) error { return fmt.Errorf("invalid expire time in '%s' command", name) }

// ParseSet reads SET key value [NX | XX | IFEQ value] [GET] [EX s | PX ms |
// EXAT s | PXAT ms | KEEPTTL]; words[0] is SET itself. Errors have the texts of
// Redis, without the ERR. A time is any int64 above 0 that fits into ms.
func ParseSet(words []string) (SetRequest, error) {
	if len(words) < 3 {
		return SetRequest{}, errArity("set")
	}
	r := SetRequest{Key: words[1], Value: words[2]}
	expiry, value := "", "" // the option of the expiry, and its value
	for i := 3; i < len(words); i++ {
		name := upper(words[i])
		valued := name == "IFEQ" || name == "EX" || name == "PX" || name == "EXAT" || name == "PXAT"
		if valued {
			if i++; i == len(words) {
				return SetRequest{}, errSyntax
			}
		}
		switch name {
		case "NX", "XX", "IFEQ":
			if !r.condition(name) {
				return SetRequest{}, errSyntax
			}
			if valued {
				r.Equal = words[i]
			}
		case "GET":
			r.Get = true
		case "KEEPTTL", "EX", "PX", "EXAT", "PXAT":
			if expiry != "" && expiry != name {
				return SetRequest{}, errSyntax
			}
			expiry, value = name, words[i]
		default:
			return SetRequest{}, errSyntax
		}
	}
	return r, r.expire(expiry, value)
}

// expire runs last: Redis checks the words before it checks the time.
func (r *SetRequest) expire(option, value string) (err error) {
	switch option {
	case "":
		return nil
	case "KEEPTTL":
		r.Expiry.Kind = KeepExpiry
		return nil
	case "EXAT", "PXAT":
		r.Expiry.Kind = At
	default:
		r.Expiry.Kind = After
	}
	r.Expiry.MS, err = parseExpiry(value, option, "set")
	return err
}

// condition records a condition. Redis accepts a repeated condition, but no two different
// ones.
func (r *SetRequest) condition(name string) bool {
	when := map[string]Condition{"NX": IfAbsent, "XX": IfPresent, "IFEQ": IfEqual}[name]
	if r.When != Always && (r.When != when || when == IfEqual) {
		return false
	}
	r.When = when
	return true
}

// parseExpiry reads the value of EX, PX, EXAT or PXAT into ms.
func parseExpiry(value, option, command string) (int64, error) {
	n, ok := parseInt(value)
	if !ok {
		return 0, errNotInteger
	}
	inSeconds := option[0] == 'E'
	if n <= 0 || inSeconds && n > math.MaxInt64/1000 {
		return 0, errExpire(command)
	}
	if inSeconds {
		n *= 1000
	}
	return n, nil
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
	for i := range len(word) {
		if 'a' <= word[i] && word[i] <= 'z' {
			b := []byte(word)
			for j, c := range b {
				if 'a' <= c && c <= 'z' {
					b[j] = c - 'a' + 'A'
				}
			}
			return string(b)
		}
	}
	return word
}
