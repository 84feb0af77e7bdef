// Package checker decides whether a recorded history of lock clients can have come
// from a correct lock. Tests record what clients saw (Recorder) and call Check.
//
// Every rule reports only contradictions that are certain, whatever happened
// between a call and its answer: a history that Check rejects is a bug, of the
// lock or of the recording. The converse does not hold, as for any test.
//
// The rules check the contract, not the implementation. A successful acquire means
// that the token holds the key from some instant between call and answer up to the
// end of its validity, unless it is released. An extend succeeds only while the token
// holds the key. The answer 1 of a release means that the token held the key and now
// does not.
//
// Reading order: history.go, recorder.go; check.go, index.go, promise.go; the
// rules sweep.go, fence.go, release.go, continuity.go, ids.go, work.go; by search
// linear.go, window.go; of several holders readers.go, permits.go, joint.go,
// jointwindow.go, jointcheck.go.
package checker
