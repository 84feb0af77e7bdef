// The modes of exclusive locks, of one or several keys.

package lease

import "redlockd/redlock/engine"

// exclusiveMode is one holder. A single key with a token of the ballot's own is a plain SET NX.
type exclusiveMode struct {
	oneToken
	looks bool // it is a script all the same, which looks at the key and at the queue of FAIR
}

// exclusive is the mode of requests without one. Looking is the same for a request to which the masters
// look at what the key holds: data that is no lock is ErrWrongType.
var (
	exclusive Mode = &exclusiveMode{}
	Looking   Mode = &exclusiveMode{looks: true}
)

// plainSET is in the ballots of all of them: it knows nothing of one.
var plainSET = &plainMode{looks: Looking}

func (*exclusiveMode) Kind() Kind { return Exclusive }

func (f *exclusiveMode) bounded(r *LockRequest) bool { return f.isPlain(r) }

func (f *exclusiveMode) isPlain(r *LockRequest) bool {
	return !f.looks && len(r.More) == 0 && r.Token == ""
}

func (f *exclusiveMode) ballot(a *lockBallot) ballotMode {
	switch r := &a.call.request; {
	case f.isPlain(r):
		return plainSET
	case r.Token == "" && ticketOf(r.Mode) == nil:
		return &freshMode{}
	case len(r.More) > 0:
		return &multiMode{queueCheck: newQueueCheck(a)}
	}
	return &tokenMode{queueCheck: newQueueCheck(a)}
}

// partMode is an exclusive lock that is to be one of several, in several groups of masters, see Join. If
// its token was generated, no client knows it yet, and nothing but this attempt has it.
type partMode struct {
	exclusiveMode
	of engine.Token
}

// PartOf is that mode. of is the token of the parts before it, "" if it is the first.
func PartOf(of engine.Token) Mode { return &partMode{exclusiveMode{looks: true}, of} }

func (f *partMode) announced() bool { return false }

func (f *partMode) token(fresh engine.Token) engine.Token {
	if f.of != "" {
		return f.of
	}
	return fresh
}
