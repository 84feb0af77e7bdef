// ParseSet reads SET, whose options clients write in every order and case.
package dropin

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Condition is when a SET writes.
type Condition uint8

const (
	Always    Condition = iota
	IfAbsent            // NX
	IfPresent           // XX
	IfEqual             // IFEQ
)

// ExpiryKind is what a SET does to the expiry.
type ExpiryKind uint8

const (
	Persistent ExpiryKind = iota
	After                 // EX, PX
	At                    // EXAT, PXAT
	KeepExpiry            // KEEPTTL
)

// Expiry is when a key goes away.
type Expiry struct {
	Kind ExpiryKind
	MS   int64 // from now for After, since 1970 for At; always above 0
}

// SetRequest is a SET that was understood.
type SetRequest struct {
	Key, Value string
	When       Condition
	Equal      string // for IfEqual
	Expiry     Expiry
	Get        bool // answer what was there before
}

// Texts of Redis, which client libraries match on.
var (
	errSyntax     = errors.New("syntax error")
	errNotInteger = errors.New("value is not an integer or out of range")
)

func errArity(name string) error {
	return fmt.Errorf("wrong number of arguments for '%s' command", name)
}

func errExpire(name string) error { return fmt.Errorf("invalid expire time in '%s' command", name) }

// ParseSet reads SET key value [NX | XX | IFEQ value] [GET] [EX s | PX ms |
// EXAT s | PXAT ms | KEEPTTL]; words[0] is SET itself. Errors are in the words
// of Redis, without the ERR. A time is any int64 above 0 that fits into ms.
func ParseSet(words []string) (SetRequest, error) {
	if len(words) < 3 {
		return SetRequest{}, errArity("set")
	}
	r := SetRequest{Key: words[1], Value: words[2]}
	expiry, value := "", "" // the option that gives it, and its value
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

// expire comes last: Redis looks at the words before it looks at the time.
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

// condition notes a condition; Redis lets one be repeated but not combined.
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

// DeleteRequest is a compare-and-delete that was understood.
type DeleteRequest struct{ Key, Equal string }

// ParseDeleteIfEqual reads DELEX key IFEQ value and DELIFEQ key value.
func ParseDeleteIfEqual(words []string) (DeleteRequest, error) {
	name := strings.ToLower(words[0]) // the caller has found it by this name
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

// upper changes ASCII letters only: strings.ToUpper also makes an I of the
// dotless ı, and an S of the long ſ.
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
