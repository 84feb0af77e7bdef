// argon2id: passwords of the users file as memory-hard hashes, in the text form that
// password hashing tools share: $argon2id$v=19$m=KiB,t=PASSES,p=LANES$SALT$HASH.

package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
)

const (
	// The costs of a new hash: the lower bound that OWASP's Password Storage Cheat
	// Sheet recommends, some 20 ms and 19 MiB a check.
	argonMemory = 19 * 1024 // KiB
	argonPasses = 2
	argonLanes  = 1
	argonSalt   = 16 // bytes
	argonSum    = 32 // bytes

	// What a hash in the users file may cost at most: every failed login pays it.
	maxArgonMemory = 256 * 1024 // KiB
	maxArgonPasses = 10
	maxArgonLanes  = 16

	// maxArgonQueue is how many logins may wait for a check; further ones are refused.
	maxArgonQueue = 32
)

var errArgon = fmt.Errorf("is not of the form $argon2id$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH with at most m=%d, t=%d, p=%d and 8 to 64 bytes of salt and hash each; make one with `redlockd hash-password`",
	maxArgonMemory, maxArgonPasses, maxArgonLanes)

// argonHash is one accepted password.
type argonHash struct {
	memory, passes uint32
	lanes          uint8
	salt, sum      []byte
	accepted       atomic.Pointer[[32]byte] // digest of the password that fitted: the next check is cheap
}

// HashPassword makes the text for password-argon2id in a users file.
func HashPassword(password string) string {
	h := argonHash{memory: argonMemory, passes: argonPasses, lanes: argonLanes, salt: make([]byte, argonSalt)}
	rand.Read(h.salt) // never fails: the runtime ends the process instead
	h.sum = h.of(password, argonSum)
	return h.text()
}

func (h *argonHash) of(password string, length int) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(length))
}

func (h *argonHash) text() string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.lanes, encode(h.salt), encode(h.sum))
}

func parseArgon(text string) (*argonHash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 {
		return nil, errArgon
	}
	// What fails here is found below: the text of the hash is another one then.
	h := &argonHash{}
	_, _ = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes)
	h.salt, _ = base64.RawStdEncoding.DecodeString(parts[4])
	h.sum, _ = base64.RawStdEncoding.DecodeString(parts[5])
	if h.text() != text || h.memory < 8 || h.memory > maxArgonMemory || h.passes < 1 || h.passes > maxArgonPasses || h.lanes < 1 || h.lanes > maxArgonLanes ||
		min(len(h.salt), len(h.sum)) < 8 || max(len(h.salt), len(h.sum)) > 64 {
		return nil, errArgon
	}
	return h, nil
}

// argonChecks bounds how many hashes are computed at once, over all logins.
type argonChecks struct {
	slots   chan struct{}
	waiting atomic.Int32
}

var errBusy = errors.New("too many logins are being checked")

// fits reports whether one of the hashes is the password's. digest is the
// password's under the secret of this process. A password that fitted before costs
// a comparison; every other one costs all hashes, whichever fits.
func (a *argonChecks) fits(hashes []*argonHash, password string, digest [32]byte) (bool, error) {
	for _, h := range hashes {
		if before := h.accepted.Load(); before != nil && subtle.ConstantTimeCompare(before[:], digest[:]) == 1 {
			return true, nil
		}
	}
	if len(hashes) == 0 {
		return false, nil
	}
	defer a.waiting.Add(-1)
	if a.waiting.Add(1) > maxArgonQueue {
		return false, errBusy
	}
	a.slots <- struct{}{}
	defer func() { <-a.slots }()
	found := false
	for _, h := range hashes {
		if subtle.ConstantTimeCompare(h.of(password, len(h.sum)), h.sum) == 1 {
			h.accepted.Store(&digest)
			found = true
		}
	}
	return found, nil
}

// padArgon gives every user as many hashes as the one with the most has, and decoys
// for names that do not exist: how long a failed login takes reveals nothing.
func padArgon(roster map[string]*Rights) (decoys []*argonHash) {
	var costliest []*argonHash
	for _, who := range roster {
		if len(who.argon) > len(costliest) {
			costliest = who.argon
		}
	}
	for _, h := range costliest {
		decoy := &argonHash{memory: h.memory, passes: h.passes, lanes: h.lanes, salt: make([]byte, len(h.salt)), sum: make([]byte, len(h.sum))}
		rand.Read(decoy.salt) // never fails, see above
		rand.Read(decoy.sum)
		decoys = append(decoys, decoy)
	}
	for _, who := range roster {
		who.argon = append(who.argon, decoys[len(who.argon):]...)
	}
	return decoys
}
