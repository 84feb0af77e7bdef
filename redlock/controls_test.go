package redlock

// controls_test.go: a test that cannot fail proves nothing. Every safety rule is
// switched off once, in a build that holds the mutants, and the test that guards it must
// notice, for the right reason.

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockd/redlock/mutants"
)

// control is a mutant that lacks a rule, a test that guards it, and what that test says without it.
type control struct {
	rule string
	test string
	says string
}

func controls() []control {
	const twoHolders, order, forgot = "two tokens hold", "was given after", "by masters that forgot it"
	const flushall = "TestMemory_VotesAfterAFlushallAreVoid"
	const mute = "TestUndo_ReachesMastersThatDidNotAnswer"
	return []control{
		{"seal", flushall, twoHolders},
		{"identity", flushall, twoHolders},
		{"xx", flushall, twoHolders},
		{"seal-last", "TestMemory_AFlushallInsideAFlushIsNoticed", twoHolders},
		{"age", "TestMemory_OfAMasterRestartedEmptyVotesOnlyOnceItIsOlderThanTheLongestLease", twoHolders},
		{"clock", "TestClock_AMasterWhoseClockSteppedDoesNotVote", twoHolders},
		{"invalidate", "TestClock_AStepThatWasSeenAndUndoneInvalidatesTheMastersIncarnation", twoHolders},
		{"low-end", "TestFence_RisesAboveRegistersThatAreFarAhead", order},
		{"gt", "TestFence_OfARefusedAttemptLowersNoRegister", order},
		{"fence-vote", "TestFence_LiesInTheIntervalsOfMastersThatGaveTheLock", "was given and released"},
		{"one-flush", "TestFence_AReaderBehindALockOfTheKeySharesNoFlush", "of one key in one flush"},
		{"fresh-twice", "TestMulti_OfRequestsInOneFlushThatShareAKeyOneIsGranted", twoHolders},
		{"fresh-queue", "TestFair_NoRequestWithItPassesAnEstablishedWaiter", "a FAIR try passed"},
		{"one-taker", "TestFence_OfTwoLocksThatSucceedInOneFlushOneCounts", "are both granted"},
		{"late", "TestVote_ThatIsExecutedAfterTheMasterTimeoutDoesNotCount", "by masters that executed it after"},
		{"read-late", "TestVote_ThatIsExecutedAfterTheMasterTimeoutDoesNotCount", "by masters that executed it after"},
		{"repair", "TestExtend_RevivesNoLeaseThatAQuorumHasLost", "extended for"},
		{"shorten", "TestExtend_ShortensNothing", "shortened the copy"},
		{"quarantined-absence", "TestRelease_AMasterThatForgotDoesNotProveThatALockWasNotHeld", forgot},
		{"repeat-absence", "TestRelease_AnAbsenceWithoutAGoodSealProvesNothing", forgot},
		{"pending-release", "TestRelease_ReachesAMasterThatWasCutOff", "gone before its time"},
		{"pending-release", mute, "long before the lease"},
		{"bulk-own", "TestRelease_DoesNotPassTheAcquireOfItsOwnToken", "a release passed the acquire of its own token"},
		{"bulk-stay", "TestRelease_DoesNotPassTheAcquireOfItsOwnToken", "a release passed the acquire of its own token"},
		{"bulk-shifted", "TestAcquire_InOneCallWithOthersIsAsIfItWereAlone", "masters have its token"},
		{"bulk-keys", "TestAcquire_InOneCallWithOthersIsAsIfItWereAlone", "masters have its token"},
		{"bulk-slot", "TestAcquire_InOneCallWithOthersIsAsIfItWereAlone", "one permit of p"},
		{"undo-all", mute, "long before the lease"},
		{"undo-once", "TestUndo_ByACallersTokenIsNotRepeatedOnceItMayHaveBeenExecuted", twoHolders},
		{"undo-guard", "TestUndo_LeavesACopyAloneThatARetryCountsOn", "of a lease that runs"},
		{"undo-unlearnt", "TestUndo_OfARequestThatMetItsOwnTokensCopyLeavesThatAlone", "copy of a lease that runs"},
		{"trust", "TestIDs_AreNotRepeatedByAMasterThatForgotThem", "was given"},
		{"unpurged", "TestShared_AReaderWhoseTimeIsOverIsNotCounted", "the only reader left becomes the writer"},
		{"caller-clock", "TestShared_WhetherAReadersTimeIsOverIsDecidedByTheMasters", twoHolders},
		{"upgrade-undo", "TestUndo_OfAnUpgradeGivesTheReadLeaseBack", "has cost the read lease"},
		{"one-kind", "TestExtend_CopiesOfTwoKindsDoNotAddUp", "one copy of the writer and one of a reader"},
		{"one-seal", "TestFence_ReadersThatComeAtOnceNeverShareOne", "was given to two readers"},
		{"levels-apart", "TestReentrant_LevelsOfOneOwnerKeepEverythingElseOut", twoHolders},
		{"counted-permits", "TestPermits_ThreeMinoritiesOfTwoPermitsAreNotThreeHolders", "3 tokens hold 2 permits"},
		{"admitted-at", "TestIncarnation_OfADurableMasterThatLostAcknowledgedWritesEnds", twoHolders},
		{"edges-kept", "TestEdges_AreGoneBeforeTheAnswer", "has its edge when it is answered"},
		{"edges-slow", "TestEdges_ASearchThatTookLongDoesNotCount", "after a search that took longer"},
		{"edges-own", "TestEdges_AReaderThatBecomesTheWriterWaitsNotForItself", "would wait for its own lock"},
		{"fair-unasked", "TestFair_AWriterAmongContinuousReadersWaitsForOneGeneration", "held by another token"},
		{"older-file", "TestEpoch_AMasterWithAnOlderFileGivesTheFormerListNoQuorum", twoHolders},
		{"older-file", "TestEpoch_AnOldListThatIsStartedAgainGetsNoQuorum", twoHolders},
		{"older-file", "TestMoves_AnOlderFileGivesTheSourceNoSlotBack", twoHolders},
		{"later-epoch", "TestEpoch_ADurableMasterFromABackupGivesTheFormerListNoQuorum", twoHolders},
		{"later-epoch", "TestEpoch_AVolumeUnderAnotherAddressGivesTheFormerListNoQuorum", twoHolders},
		{"later-epoch", "TestEpoch_OfFiveMastersAMajorityOfOldOnesIsNone", twoHolders},
		{"older-change", "TestEpoch_AChangeOfAnOlderFileDoesNotTakePlace", twoHolders},
		{"claims", "TestAdmission_ADaemonThatMissedAChangeGetsNoQuorum", twoHolders},
		{"claims", "TestFollow_FiveMastersBecomeThreeBesideADaemonOfTheFive", twoHolders},
		{"meet", "TestFollow_AChangeWhoseQuorumsNeedNotMeetIsRefused", twoHolders},
		{"change-rest", "TestFollow_AChangeAfterAnotherWaitsForTheLeases", twoHolders},
		{"one-epoch", "TestEpoch_AConnectionOfBeforeTwoChangesDoesNotVote", twoHolders},
		{"newcomer-first", "TestEpoch_AChangeThatIsInterruptedBeginsWithNoNewMaster", twoHolders},
		{"rename-blind", "TestEpoch_OfTwoChangesAtOnceOneTakesPlace", twoHolders},
		{"lost-change", "TestEpoch_AChangeThatHasAQuorumIsNotReplaced", twoHolders},
		{"in-force", "TestEpoch_OfTwoChangesThatStopHalfwayNoneIsUsed", twoHolders},
		{"carry", "TestCarry_AMinorityThatMissedItIsAQuorumLater", "was given after"},
		{"carry-unsure", "TestCarry_NobodyVouchesForIDsThatNoQuorumRemembers", "was given after"},
		{"carry-lowers", "TestCarry_IDsThatAreDrawnMeanwhileAreNotRepeated", "was given after"},
		{"claims-order", "TestEpoch_ABlankGroupBeginsWithOneOfTwoLists", twoHolders},
		{"slots", "TestAdmission_ADaemonWithAnotherMapGetsNoQuorum", twoHolders},
		{"slots-no-freeze", "TestMoves_NoLeaseOutlivesTheFreeze", "and its slot has another group"},
		{"slots-registers-not-raised", "TestMoves_FencesRise", "was given after"},
		{"slots-counters-not-installed", "TestMoves_IDsAreNotRepeatedOverThereAndBack", "was given again"},
		{"slots-stale-counters", "TestMoves_IDsAreNotRepeatedOverThereAndBack", "was given again"},
		{"joint-fence", "TestJoint_TheFenceIsBelowThoseOfLaterLocksInEachGroup", order},
		{"slots-no-end-check", "TestMoving_WhatWasBegunBeforeTheKeyLeftItsGroupIsNotGranted", "after its slot has left the group"},
		{"distinct", "TestAdmission_OneServerUnderTwoAddressesIsOneMaster", "by one server of two"},
	}
}

// setupControls are by tests of package pool/setup.
func setupControls() []control {
	return []control{
		{"slots-late-operator", "TestMoveSlots_ALateOperatorDoesNotRepeatAMoveThatWasUndone", "has counter {a}:n = \"100@"},
		{"slots-unfinished-switch", "TestMoveSlots_ACutIsKeptWhileTheSwitchIsUnfinished", "leaving=20-30@g3"},
		{"blank-carries", "TestChangeMasters_AMasterThatWasEmptiedCarriesNothing", "emptied masters count"},
		{"slots-cut-version", "TestMoveSlots_AFormerCutKeepsItsVersion", "has counter {a}:n = \"100@"},
	}
}

// poolControls are by tests of package pool.
func poolControls() []control {
	return []control{
		{"raised", "TestVerify_NoVoteCountsUnderABadSeal", "register was not raised"},
		{"resent-passes", "TestBulk_WhatHasLostItsScriptIsExecutedOnceAndPassesNothingOfItsToken", "is executed before"},
		{"resent-last", "TestFlush_WhatIsSentAgainGoesInFrontOfWhatIsQueued", "executed"},
		{"step-creep", "TestSteps_ASumBeyondTheBudgetInvalidates", "incarnations invalidated"},
		{"extend-stays", "TestBulk_KeepsTheOrderOfEveryKey", "is executed before"},
	}
}

// leaseControls are by tests of package lease.
func leaseControls() []control {
	return []control{{"earlier-try", "TestRepeat_TheReleaseIsForMastersOfAnEarlierTryToo", "get the release later"}}
}

// renewControls are by tests of package renew.
func renewControls() []control {
	return []control{
		{"wanted-next", "TestRevoke_TheNextHolderIsNotAsked", "told"},
		{"wanted-unread", "TestRevoke_ReachesTheHoldersOfAnotherDaemon", "are notified"},
	}
}

func TestControls_EachBrokenRuleIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("the controls run every directed test once more, without its rule")
	}
	t.Parallel()
	dir := t.TempDir()
	for pkg, all := range map[string][]control{".": controls(), "../pool": poolControls(), "../pool/setup": setupControls(), "./lease": leaseControls(), "./renew": renewControls()} {
		tests := filepath.Join(dir, filepath.Base(pkg)+".test")
		if err := mutants.Build("..", dir, tests, pkg, "test", "-c"); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			t.Run(c.rule+"/"+c.test, func(t *testing.T) {
				t.Parallel() // they mostly wait
				c.run(t, pkg, tests)
			})
		}
	}
}

// run has a limit that no test without its rule comes near.
func (c control) run(t *testing.T, pkg, tests string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tests, "-test.v", "-test.run", "^"+c.test+"$")
	cmd.Dir = pkg
	cmd.Env = append(os.Environ(), mutants.Variable+"="+c.rule)
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
	rules, all := mutants.Rules(), slices.Concat(controls(), poolControls(), setupControls(), leaseControls(), renewControls())
	for _, m := range rules {
		if !slices.ContainsFunc(all, func(c control) bool { return c.rule == m.Name }) {
			t.Errorf("no test is known to notice when the rule %q is broken", m.Name)
		}
	}
	for _, c := range all {
		if !slices.ContainsFunc(mutants.All(), func(m mutants.Mutant) bool { return m.Name == c.rule }) {
			t.Errorf("%s guards %q, which is no rule", c.test, c.rule)
		}
	}
}
