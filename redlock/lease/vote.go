// One master's answer to a lockBallot.

package lease

// vote is a master's answer in the terms of the ballot.
type vote struct {
	yes, no, wrongType bool
	hadCopy            bool // some of it was this token's before
	copy               copyState
}

// copyState is what is known about this ballot's copy on one master.
type copyState uint8

const (
	copyNone     copyState = iota // not sent, refused, or not answered yet
	copyMade                      // this ballot made it
	copyMaybe                     // sent, but no answer came
	copyEarlier                   // the token had it before: never undone
	copyUpgraded                  // the token was a reader before and is now the writer
)
