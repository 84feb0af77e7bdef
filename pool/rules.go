package pool

// Rule names a safety rule that a negative control can switch off, in builds
// with the tag "controls" only.
type Rule string

// The rules whose absence the tests must detect.
const (
	RuleSeal              Rule = "seal"                // votes count only under a good seal
	RuleSealLast          Rule = "seal-last"           // the seal stands behind the commands that it stands for
	RuleIdentity          Rule = "identity"            // the seal compares the identity and the register
	RuleInvalidate        Rule = "invalidate"          // a clock that stepped invalidates the incarnation for good
	RuleClock             Rule = "clock"               // the seal compares the clock
	RuleExists            Rule = "xx"                  // the seal never re-creates the identity
	RuleGreater           Rule = "gt"                  // a register never falls
	RuleLowEnd            Rule = "low-end"             // a fence lies above the voter's old register
	RuleFenceVote         Rule = "fence-vote"          // only masters that granted the lock own fences
	RuleLate              Rule = "late"                // late answers do not count
	RuleAge               Rule = "age"                 // a quarantined master's consent does not count
	RuleRepair            Rule = "repair"              // a repaired copy is no vote
	RuleShorten           Rule = "shorten"             // an extension never shortens
	RuleQuarantineAbsence Rule = "quarantined-absence" // a quarantined master's "not held" proves nothing
	RuleRepeatAbsence     Rule = "repeat-absence"      // "not held" without a good seal proves nothing
	RuleUndoGuard         Rule = "undo-guard"          // an undo takes only its own attempt's copy
	RuleUndoAll           Rule = "undo-all"            // an undo goes to masters that did not answer, too
	RulePendingRelease    Rule = "pending-release"     // an unanswered release is repeated
	RuleTrust             Rule = "trust"               // a counter counts only in the memory that vouches for it
	RuleDistinct          Rule = "distinct"            // one server is one master
	RuleOneFlush          Rule = "one-flush"           // an acquire ends its key's part in a flush
	RuleOneTaker          Rule = "one-taker"           // of several acquires of a key in one flush one may count
	// Of the modes.
	RuleUnpurged       Rule = "unpurged"        // readers whose lease is over are not counted
	RuleCallerClock    Rule = "caller-clock"    // the master's clock decides whether it is over
	RuleUpgradeUndo    Rule = "upgrade-undo"    // undoing an upgrade gives the read lease back
	RuleOneKind        Rule = "one-kind"        // an extension counts copies of one kind
	RuleOneSeal        Rule = "one-seal"        // fences of overlapping holders lie in the interval of one seal
	RuleCountedPermits Rule = "counted-permits" // a quorum gives the same permit
)
