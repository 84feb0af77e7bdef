--------------------------------- MODULE Ids ---------------------------------
(* DNEXTID: ids of one counter on N masters. Each action names its function. *)
(* A rule is one of redlock/mutants/rules.go, or a line of ids/nextid.go.    *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  Masters, Daemons,
  Rounds,   \* how many rounds there are in all
  Size,     \* ids that a round requests, at most
  Hints,    \* what daemons have seen before: it need not stand on any master
  Losses,   \* how many masters lose their memory
  Without   \* the rules that a negative control leaves out

(* A round lasts for idRoundTime at most. So when a round begins a while after a master was admitted, no *)
(* round is open that the master may have forgotten. Here, events have numbers instead of times, and a *)
(* round has that of the oldest round that was open when it began. *)
VARIABLES
  master,   \* its incarnation; the counter's value, and the incarnation that vouches for it; when it was admitted
  round,    \* a daemon's round: idRound
  counter,  \* a daemon's idCounter: highest, confirmed, since
  given,    \* ghost: ranges that were answered, and the highest id answered when each was requested
  budget    \* what may still happen; the numbers of the next incarnation and event
vars == <<master, round, counter, given, budget>>

Has(rule) == rule \notin Without
Quorum == Cardinality(Masters) \div 2 + 1
Max(a, b) == IF a > b THEN a ELSE b
None == [st |-> "none", lo |-> 0, hi |-> 0, began |-> 0, oldest |-> 0, floor |-> 0, says |-> [m \in Masters |-> "none"], high |-> 0]

Init ==
  /\ master = [m \in Masters |-> [inc |-> 1, value |-> 0, vouches |-> 1, since |-> 0]]
  /\ round = [d \in Daemons |-> None]
  /\ \E hints \in [Daemons -> Hints] : counter = [d \in Daemons |-> [highest |-> hints[d], confirmed |-> 0, since |-> 0]]
  /\ given = {}
  /\ budget = [rounds |-> Rounds, losses |-> Losses, inc |-> 2, now |-> 1]

Largest == IF given = {} THEN 0 ELSE CHOOSE x \in {g.hi : g \in given} : \A g \in given : g.hi <= x
Open == {round[d].began : d \in {d \in Daemons : round[d].st = "running"}}
Oldest == CHOOSE x \in Open \cup {budget.now} : \A y \in Open \cup {budget.now} : x <= y

(* idCounter.round, idRound.freeze: the range above the highest value that this daemon has seen. *)
Propose(d, n) ==
  /\ round[d].st = "none" /\ budget.rounds > 0
  /\ budget' = [budget EXCEPT !.rounds = @ - 1, !.now = @ + 1]
  /\ round' = [round EXCEPT ![d] = [None EXCEPT !.st = "running", !.lo = counter[d].highest + 1, !.hi = counter[d].highest + n,
                                                !.began = budget.now, !.oldest = IF Has("round-time") THEN Oldest ELSE budget.now, !.floor = Largest]]
  /\ UNCHANGED <<master, counter, given>>

(* nextid.lua, and the seal behind it; idRound.Command, idRound.Read. *)
Adopts(d, m) == counter[d].confirmed > 0 /\ counter[d].since > master[m].since
Accept(d, m) ==
  LET R == round[d]
      M == master[m]
      anew == M.vouches # M.inc /\ Adopts(d, m)
      V == IF anew THEN [M EXCEPT !.value = Max(@, counter[d].confirmed), !.vouches = M.inc] ELSE M
      accepted == V.value < R.lo \/ ~Has("above")
      counts == V.vouches = V.inc \/ ~Has("trust")
  IN
  /\ R.st = "running" /\ R.says[m] = "none"
  /\ master' = [master EXCEPT ![m] = IF accepted THEN [V EXCEPT !.value = Max(@, R.hi)] ELSE V]
  /\ round' = [round EXCEPT ![d].says[m] = IF accepted THEN (IF counts THEN "yes" ELSE "void") ELSE "no", ![d].high = Max(@, V.value)]
  /\ UNCHANGED <<counter, given, budget>>

(* idRound.succeed. *)
Succeed(d) ==
  LET R == round[d] IN
  /\ R.st = "running" /\ Cardinality({m \in Masters : R.says[m] = "yes"}) >= Quorum
  /\ given' = given \cup {[lo |-> R.lo, hi |-> R.hi, floor |-> R.floor]}
  /\ counter' = [counter EXCEPT ![d] = [highest |-> Max(@.highest, R.hi), confirmed |-> Max(@.confirmed, R.hi),
                                        since |-> IF R.hi > @.confirmed THEN R.oldest ELSE @.since]]
  /\ round' = [round EXCEPT ![d] = None]
  /\ UNCHANGED <<master, budget>>

(* idRound.fail: its range is used up; the next round is above everything seen. *)
Fail(d) ==
  /\ round[d].st = "running"
  /\ counter' = [counter EXCEPT ![d].highest = Max(@, Max(round[d].hi, round[d].high))]
  /\ round' = [round EXCEPT ![d] = None]
  /\ UNCHANGED <<master, given, budget>>

(* A memory is lost, and a new incarnation is admitted. What it voted before counts in the rounds that are open. *)
Lose(m) ==
  /\ budget.losses > 0
  /\ budget' = [budget EXCEPT !.losses = @ - 1, !.inc = @ + 1, !.now = @ + 1]
  /\ master' = [master EXCEPT ![m] = [inc |-> budget.inc, value |-> 0, vouches |-> 0, since |-> budget.now]]
  /\ UNCHANGED <<round, counter, given>>

Next == \E d \in Daemons : \/ \E n \in 1..Size : Propose(d, n)
                           \/ Succeed(d) \/ Fail(d)
                           \/ \E m \in Masters : Accept(d, m)
        \/ \E m \in Masters : Lose(m)
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Masters) \cup Permutations(Daemons)

Unique == \A a, b \in given : a # b => a.hi < b.lo \/ b.hi < a.lo
(* An id that was answered before another one was requested is smaller. *)
Ordered == \A g \in given : g.floor < g.lo
=============================================================================
