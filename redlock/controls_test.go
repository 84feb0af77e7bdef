//go:build !controls

package redlock

// controls_test.go: a test that cannot fail proves nothing. Every safety rule is
// switched off once, in a build of its own, and the test that guards it must
// notice, for the right reason.

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/pool"
)

// control is a rule, a test that guards it, and what that test says without it.
type control struct {
	rule pool.Rule
	test string
	says string
}

func controls() []control {
	const twoHolders, order, forgot = "two tokens hold", "was given after", "by masters that forgot it"
	const flushall = "TestMemory_VotesAfterAFlushallAreVoid"
	const mute = "TestUndo_ReachesMastersThatDidNotAnswer"
	return []control{
		{pool.RuleSeal, flushall, twoHolders},
		{pool.RuleIdentity, flushall, twoHolders},
		{pool.RuleExists, flushall, twoHolders},
		{pool.RuleSealLast, "TestMemory_AFlushallInsideAFlushIsNoticed", twoHolders},
		{pool.RuleAge, "TestMemory_OfAMasterRestartedEmptyVotesOnlyOnceItIsOlderThanTheLongestLease", twoHolders},
		{pool.RuleClock, "TestClock_AMasterWhoseClockSteppedDoesNotVote", twoHolders},
		{pool.RuleInvalidate, "TestClock_AStepThatWasSeenAndUndoneInvalidatesTheMastersIncarnation", twoHolders},
		{pool.RuleLowEnd, "TestFence_RisesAboveRegistersThatAreFarAhead", order},
		{pool.RuleGreater, "TestFence_OfARefusedAttemptLowersNoRegister", order},
		{pool.RuleFenceVote, "TestFence_LiesInTheIntervalsOfMastersThatGaveTheLock", "was given and released"},
		{pool.RuleOneFlush, "TestFence_AReaderBehindALockOfTheKeySharesNoFlush", "of one key in one flush"},
		{pool.RuleOneTaker, "TestFence_OfTwoLocksThatSucceedInOneFlushOneCounts", "are both granted"},
		{pool.RuleLate, "TestVote_ThatComesAfterTheMasterTimeoutDoesNotCount", "by answers that came after"},
		{pool.RuleRepair, "TestExtend_RevivesNoLeaseThatAQuorumHasLost", "extended for"},
		{pool.RuleShorten, "TestExtend_ShortensNothing", "shortened the copy"},
		{pool.RuleQuarantineAbsence, "TestRelease_AMasterThatForgotDoesNotProveThatALockWasNotHeld", forgot},
		{pool.RuleRepeatAbsence, "TestRelease_AnAbsenceWithoutAGoodSealProvesNothing", forgot},
		{pool.RulePendingRelease, "TestRelease_ReachesAMasterThatWasCutOff", "gone before its time"},
		{pool.RulePendingRelease, mute, "long before the lease"},
		{pool.RuleUndoAll, mute, "long before the lease"},
		{pool.RuleUndoGuard, "TestUndo_OfARepeatLeavesTheLeaseAlone", "of a lease that runs"},
		{pool.RuleTrust, "TestIDs_AreNotRepeatedByAMasterThatForgotThem", "was given"},
		{pool.RuleUnpurged, "TestShared_AReaderWhoseTimeIsOverIsNotCounted", "the only reader left becomes the writer"},
		{pool.RuleCallerClock, "TestShared_WhetherAReadersTimeIsOverIsDecidedByTheMasters", twoHolders},
		{pool.RuleUpgradeUndo, "TestUndo_OfAnUpgradeGivesTheReadLeaseBack", "has cost the read lease"},
		{pool.RuleOneKind, "TestExtend_CopiesOfTwoKindsDoNotAddUp", "one copy of the writer and one of a reader"},
		{pool.RuleOneSeal, "TestFence_ReadersThatComeAtOnceNeverShareOne", "was given to two readers"},
		{pool.RuleCountedPermits, "TestPermits_ThreeMinoritiesOfTwoPermitsAreNotThreeHolders", "3 tokens hold 2 permits"},
		{pool.RuleDistinct, "TestAdmission_OneServerUnderTwoAddressesIsOneMaster", "by one server of two"},
	}
}

func TestControls_EachBrokenRuleIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("the controls run every directed test once more, without its rule")
	}
	t.Parallel()
	engine := filepath.Join(t.TempDir(), "engine")
	build := exec.Command("go", "test", "-c", "-tags", "controls", "-o", engine, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests with breakable rules: %v\n%s", err, output)
	}
	for _, c := range controls() {
		t.Run(string(c.rule)+"/"+c.test, func(t *testing.T) {
			t.Parallel() // they mostly wait
			c.run(t, engine)
		})
	}
}

// run has a limit that no test without its rule comes near.
func (c control) run(t *testing.T, engine string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, engine, "-test.v", "-test.run", "^"+c.test+"$")
	cmd.Env = append(os.Environ(), "BROKEN_RULE="+string(c.rule))
	output, err := cmd.CombinedOutput()
	text := string(output)
	switch {
	case strings.Contains(text, "--- SKIP: "+c.test):
		t.Skipf("the test that guards it is skipped here:\n%s", text)
	case err == nil:
		t.Errorf("it passes without the rule that it guards:\n%s", text)
	case !strings.Contains(text, "--- FAIL: "+c.test), !strings.Contains(text, c.says):
		t.Errorf("without the rule it does not say %q (%v):\n%s", c.says, err, text)
	}
}

func TestControls_EveryRuleHasOne(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "pool", "rules.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\s+Rule\w+\s+Rule = "([\w-]+)"`).FindAllSubmatch(source, -1)
	if len(declared) == 0 {
		t.Fatal("no rule found in rules.go")
	}
	for _, match := range declared {
		rule := pool.Rule(match[1])
		if !slices.ContainsFunc(controls(), func(c control) bool { return c.rule == rule }) {
			t.Errorf("no test is known to notice when the rule %q is broken", rule)
		}
	}
}
