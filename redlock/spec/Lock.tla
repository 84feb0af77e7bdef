-------------------------------- MODULE Lock --------------------------------
(* One key on N independent masters: how a lock is granted, extended, given  *)
(* back and lost, and what fence a grant has.                                *)
(* Each action names its function. All times are what is left from now on, in units: a Tick takes one. *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Masters, Daemons,
  Faulty,   \* the masters that something may happen to; the others differ in nothing
  Asks,     \* how many requests there are in all; each has a token of its own
  W,        \* operations under way on a connection when a request is sent: today 1
  Clocks,   \* what the clocks of daemons may show in the beginning, as fences
  TTL,      \* of every lease
  Drift,    \* what its holder deducts for rates of clocks: quorum.Drift
  Late,     \* by how much a copy outlasts its lease: --master-timeout
  Age,      \* how old a memory must be to vote: pool.Options.Age
  Ends,     \* how many requests are given up, or their leases released, before their time
  Extends,  \* how often leases are extended
  Losses,   \* what happens to a memory, once: "blank" or "older" after a restart, "flushall", "split" inside a flush, "renamed" inside a seal
  Cuts,     \* how many connections end otherwise
  Steps,    \* by how much the clock of a master may step ahead, once
  Gains,    \* by how much the clocks may run ahead while estimates follow: at most Drift
  Without   \* the rules that a negative control leaves out

VARIABLES
  master,   \* memory: incarnation, 0 = none; until it may vote; register, and the highest acknowledged one
            \* (pool/records.go); token and rest of the copy; by how much the clock stepped since it was admitted
  link,     \* a daemon's connection to a master: the incarnation it was admitted to; the lane's queue
  req,      \* a daemon's request: lease/acquire.go, lockBallot; and the lease that it becomes
  hybrid,   \* a daemon's last proposal: pool/clock/clock.go, Hybrid
  last,     \* ghost: the last grant, token and fence
  budget    \* what may still happen
vars == <<master, link, req, hybrid, last, budget>>

Has(rule) == rule \notin Without
Quorum == Cardinality(Masters) \div 2 + 1
Max(a, b) == IF a > b THEN a ELSE b
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
Free == <<>>
Token(d) == <<d, req[d].n>>
Holds(d) == req[d].st = "held" /\ req[d].rest > 0
None == [said |-> "none", low |-> 0, top |-> 0, inc |-> 0]
Idle == [st |-> "idle", n |-> 0, rest |-> 0, again |-> 0, proposal |-> 0, asked |-> 0, rounds |-> 0,
         vote |-> [m \in Masters |-> None], absent |-> {}]
Over(d) == [Idle EXCEPT !.n = req[d].n]

Init ==
  /\ master = [m \in Masters |-> [inc |-> 1, young |-> 0, reg |-> 0, acked |-> 0, tok |-> Free, rest |-> 0, ahead |-> 0]]
  /\ link = [d \in Daemons |-> [m \in Masters |-> [inc |-> 1, queue |-> <<>>]]]
  /\ req = [d \in Daemons |-> Idle]
  /\ hybrid \in [Daemons -> Clocks]
  /\ last = [tok |-> Free, fence |-> 0]
  /\ budget = [asks |-> Asks, losses |-> 1, cuts |-> Cuts, steps |-> 1, gains |-> Gains, extends |-> Extends, ends |-> Ends, inc |-> 2]

(* A copy lasts so long, by the estimate of the master's clock: quorum.Expiry. *)
Lasts(m, ttl) == ttl + (IF Has("outlast") THEN Late ELSE 0) - master[m].ahead
Validity == TTL - (IF Has("drift") THEN Drift ELSE 0)                          \* quorum.Deadline
Entry(d, op, rest, raise) == [op |-> op, n |-> req[d].n, rest |-> rest, raise |-> raise]
Push(d, ms, E(_)) == [link EXCEPT ![d] = [m \in Masters |-> IF m \in ms THEN [@[m] EXCEPT !.queue = Append(@, E(m))] ELSE @[m]]]

(* acquireCall.startBallot. *)
Ask(d) ==
  /\ req[d].st = "idle" /\ budget.asks > 0 /\ \A m \in Masters : Len(link[d][m].queue) < W
  /\ budget' = [budget EXCEPT !.asks = @ - 1]
  /\ hybrid' = [hybrid EXCEPT ![d] = @ + 1]
  /\ req' = [req EXCEPT ![d] = [Idle EXCEPT !.st = "asking", !.n = req[d].n + 1, !.rest = Validity, !.proposal = hybrid'[d],
                                            !.asked = last.fence]]
  /\ link' = Push(d, Masters, LAMBDA m : [op |-> "acquire", n |-> req[d].n + 1, rest |-> Lasts(m, TTL), raise |-> hybrid'[d]])
  /\ UNCHANGED <<master, last>>

(* What a master does with an operation: SET NX PXAT, extend.lua, release.lua. The answer, and its memory. *)
Does(d, e, M) ==
  LET mine == M.tok = <<d, e.n>>
      copy == [M EXCEPT !.tok = <<d, e.n>>, !.rest = e.rest]
  IN CASE e.op \in {"acquire", "repair"} /\ M.tok # Free -> <<"no", M>>
       [] e.op \in {"acquire", "repair"} /\ M.tok = Free -> <<"yes", IF e.rest > 0 THEN copy ELSE M>>
       [] e.op = "extend" -> IF mine THEN <<"yes", [M EXCEPT !.rest = Max(@, e.rest)]>> ELSE <<"no", M>>
       [] e.op \in {"release", "undo"} -> IF mine THEN <<"yes", [M EXCEPT !.tok = Free, !.rest = 0]>> ELSE <<"no", M>>
       [] e.op = "raise" -> <<"yes", M>>

(* connection.checkSealLocked: the memory that this connection was admitted to, whose clock has not *)
(* stepped too far, and whose register is not below one that was acknowledged. Incarnation.MayVote: a young *)
(* memory executes all, and its consent does not count. *)
Good(inc, M) == Has("seal") => /\ inc = M.inc
                               /\ Has("clock") => M.ahead <= Late
                               /\ Has("register") => M.reg >= M.acked
Counts(inc, M) == Good(inc, M) /\ (Has("age") => M.young = 0)

(* What may come between the operations of a flush and its seal, or at any other time. *)
Blank(M) == [M EXCEPT !.inc = 0, !.young = 0, !.reg = 0, !.tok = Free, !.rest = 0]
Sooner(M, by) == IF M.rest <= by THEN [M EXCEPT !.young = Max(@ - by, 0), !.tok = Free, !.rest = 0]
                                 ELSE [M EXCEPT !.young = Max(@ - by, 0), !.rest = @ - by]
Stepped(M, by) == [Sooner(M, by) EXCEPT !.ahead = @ + by]
Between(M, what) == IF what = 0 THEN M ELSE IF what < 0 THEN Blank(M) ELSE Stepped(M, what)

(* A master executes the next flush of a connection, and its seal: flush.seal. The answer is read: *)
(* connection.finishFlush, lockBallot.Read, extension.Read, release.Read, Fencing.Raised. *)
Flush(d, m, between, renamed) ==
  LET e == Head(link[d][m].queue)
      inc == link[d][m].inc
      did == Does(d, e, IF Has("seal-last") THEN master[m] ELSE Between(master[m], between))
      M == IF Has("seal-last") THEN Between(did[2], between) ELSE did[2]
      S == IF Has("seal-last") THEN M ELSE master[m]                           \* what the seal finds
      Z == IF renamed THEN [M EXCEPT !.inc = budget.inc] ELSE M                \* what its ZADD finds
      old == IF S.inc = inc THEN S.reg ELSE 0
      good == Good(inc, S) /\ (Has("raised") => ~renamed \/ e.raise <= old)
      counts == good /\ Counts(inc, S)
      said == IF did[1] = "yes" /\ ~counts THEN "void" ELSE did[1]
      top == Max(old, e.raise)
      vote == IF said = "yes"
              THEN [said |-> said, low |-> IF Has("low-end") THEN old ELSE 0, top |-> top, inc |-> inc] ELSE [None EXCEPT !.said = said]
      mine == e.n = req[d].n
      gone == e.op \in {"release", "extend"} /\ did[1] = "no" /\ (counts \/ ~Has("quarantined-absence"))
      r == req[d]
  IN
  /\ link[d][m].queue # <<>>
  /\ master' = [master EXCEPT ![m] = IF Z.inc = inc \/ ~Has("xx") THEN [Z EXCEPT !.inc = inc, !.reg = Max(@, e.raise), !.acked = IF good THEN Max(@, top) ELSE @] ELSE Z]
  /\ link' = [link EXCEPT ![d][m].queue = Tail(@)]
  /\ req' = [req EXCEPT ![d] = CASE ~mine -> r
       [] e.op = "acquire" /\ r.st = "asking" -> [r EXCEPT !.vote[m] = vote]
       [] e.op = "extend" /\ r.st = "held" -> [r EXCEPT !.vote[m] = vote, !.absent = IF gone /\ r.rest > 0 THEN @ \cup {m} ELSE @]
       [] e.op = "raise" /\ r.st = "asking" /\ counts /\ r.vote[m].inc = inc -> [r EXCEPT !.vote[m].top = Max(@, top)]
       [] e.op = "release" /\ r.rest > 0 -> [r EXCEPT !.absent = IF gone THEN @ \cup {m} ELSE @]
       [] OTHER -> r]
  /\ UNCHANGED <<hybrid, last>>

(* quorum/fence.go: a voter owns every fence above its register before the flush and up to that *)
(* after it. A fence lies in the intervals of a quorum. *)
Says(d, what) == {m \in Masters : req[d].vote[m].said = what}
Voters(d) == Says(d, "yes")
Low(d, m) == req[d].vote[m].low
Fit(d) ==                                                                      \* fit
  LET enough == {x \in {Low(d, m) : m \in Voters(d)} : Cardinality({m \in Voters(d) : Low(d, m) <= x}) >= Quorum}
  IN Max(req[d].proposal, (CHOOSE x \in enough : \A y \in enough : x <= y) + 1)
Fits(d) == Cardinality({m \in Voters(d) : Low(d, m) < Fit(d) /\ Fit(d) <= req[d].vote[m].top}) >= Quorum
Elected(d) == req[d].st = "asking" /\ Cardinality(Says(d, "yes")) >= Quorum

(* lockBallot.grant. *)
Grant(d) ==
  /\ Elected(d) /\ Fits(d) /\ req[d].rest > 0
  /\ req' = [req EXCEPT ![d] = [Over(d) EXCEPT !.st = "held", !.rest = req[d].rest]]
  /\ last' = [tok |-> Token(d), fence |-> Fit(d)] /\ UNCHANGED <<master, link, hybrid, budget>>

(* Fencing.Choose: one further seal on the voters, above everything that they were found at. *)
Raise(d) ==
  LET f == Max(hybrid[d], MaxOf({Low(d, m) : m \in Says(d, "yes")})) + 1 IN
  /\ Elected(d) /\ ~Fits(d) /\ req[d].rounds < 2
  /\ \A m \in Masters : \A i \in DOMAIN link[d][m].queue : link[d][m].queue[i].op # "raise"
  /\ hybrid' = [hybrid EXCEPT ![d] = f]
  /\ req' = [req EXCEPT ![d].rounds = @ + 1]
  /\ link' = Push(d, Says(d, "yes"), LAMBDA m : Entry(d, "raise", 0, f)) /\ UNCHANGED <<master, last, budget>>

(* lockBallot.fail and takeBack: refused, too late, or the client has left. *)
GiveUp(d) ==
  /\ req[d].st = "asking" /\ budget.ends > 0 /\ budget' = [budget EXCEPT !.ends = @ - 1] /\ req' = [req EXCEPT ![d] = Over(d)]
  /\ link' = Push(d, IF Has("undo-all") THEN Masters \ Says(d, "no") ELSE Says(d, "yes"), LAMBDA m : Entry(d, "undo", 0, 0))
  /\ UNCHANGED <<master, hybrid, last>>

(* release, while the lease runs; the answer is 0 if a quorum says that it is not held. *)
Release(d) ==
  /\ Holds(d) /\ budget.ends > 0 /\ budget' = [budget EXCEPT !.ends = @ - 1]
  /\ req' = [req EXCEPT ![d] = [Over(d) EXCEPT !.rest = req[d].rest]]
  /\ link' = Push(d, Masters, LAMBDA m : Entry(d, "release", 0, 0)) /\ UNCHANGED <<master, hybrid, last>>

(* Leases.extend. A lease that this daemon knows to be over is not revived. *)
Extend(d) ==
  /\ Holds(d) /\ budget.extends > 0 /\ req[d].again = 0
  /\ budget' = [budget EXCEPT !.extends = @ - 1]
  /\ req' = [req EXCEPT ![d].again = Validity, ![d].vote = Idle.vote, ![d].absent = {}]
  /\ link' = Push(d, Masters, LAMBDA m : Entry(d, "extend", Lasts(m, TTL), hybrid[d]))
  /\ UNCHANGED <<master, hybrid, last>>
(* extension.grant; extension.repair puts copies back where they were lost, and they are no votes. *)
Extended(d) ==
  /\ req[d].st = "held" /\ req[d].again > 0 /\ Cardinality(Says(d, "yes")) >= Quorum
  /\ req' = [req EXCEPT ![d] = [Over(d) EXCEPT !.st = "held", !.rest = Max(@, req[d].again)]]
  /\ link' = Push(d, Says(d, "no"), LAMBDA m : Entry(d, "repair", Lasts(m, req[d].again), 0))
  /\ UNCHANGED <<master, hybrid, last, budget>>

(* Time. It does not pass while nobody has asked, which changes nothing. *)
Queues(by, ms) == [d \in Daemons |-> [m \in Masters |-> IF m \notin ms THEN link[d][m] ELSE [link[d][m] EXCEPT !.queue =
                    [i \in DOMAIN @ |-> [@[i] EXCEPT !.rest = Max(@ - by, 0)]]]]]
Tick ==
  /\ master' = [m \in Masters |-> Sooner(master[m], 1)]
  /\ link' = Queues(1, Masters)
  /\ req' = [d \in Daemons |-> IF req[d].rest <= 1 /\ req[d].again <= 1 THEN Over(d)
                               ELSE [req[d] EXCEPT !.rest = Max(@ - 1, 0), !.again = Max(@ - 1, 0)]]
  /\ <<master', link', req'>> # <<master, link, req>> /\ UNCHANGED <<hybrid, last, budget>>
(* A clock steps, or runs ahead so slowly that the estimates follow it: pool/gain.go. *)
Step(m, by) ==
  /\ budget.steps > 0 /\ budget' = [budget EXCEPT !.steps = @ - 1]
  /\ master' = [master EXCEPT ![m] = Stepped(@, by)]
  /\ link' = Queues(by, {m}) /\ UNCHANGED <<req, hybrid, last>>
Gain(m) ==
  /\ budget.gains > 0 /\ budget' = [budget EXCEPT !.gains = @ - 1] /\ master' = [master EXCEPT ![m] = Sooner(@, 1)]
  /\ link' = Queues(1, {m}) /\ UNCHANGED <<req, hybrid, last>>

(* handshake.admitOnce, admit.lua: join the incarnation, or begin one if there is none, if its clock has *)
(* stepped too far, or if its register is below one that was acknowledged. *)
Admitted(M) == IF M.inc # 0 /\ Good(M.inc, M) THEN M
               ELSE [M EXCEPT !.inc = budget.inc, !.young = Age, !.reg = Max(@, M.acked), !.ahead = 0]
(* connection.fail: pending undos and releases are sent again (pool/pendingrelease.go), the rest has no answer. *)
Pending(e) == e.op \in {"undo", "release"} /\ Has("pending-release")
Anew(d, m) == [inc |-> master'[m].inc, queue |-> SelectSeq(link[d][m].queue, Pending)]
Void(d, m) == IF req[d].vote[m].said = "none" /\ (req[d].st = "asking" \/ req[d].again > 0) THEN [req[d] EXCEPT !.vote[m].said = "void"] ELSE req[d]
(* A connection ends, or a seal ended it, and the next one is admitted. *)
Reconnect(d, m) ==
  LET good == Good(link[d][m].inc, master[m]) IN
  /\ good => budget.cuts > 0
  /\ master' = [master EXCEPT ![m] = Admitted(@)]
  /\ budget' = [budget EXCEPT !.cuts = IF good THEN @ - 1 ELSE @, !.inc = IF master'[m].inc = @ THEN @ + 1 ELSE @]
  /\ link' = [link EXCEPT ![d][m] = Anew(d, m)]
  /\ req' = [req EXCEPT ![d] = Void(d, m)] /\ UNCHANGED <<hybrid, last>>
(* A process ends, and comes back blank, or durable with an older state. FLUSHALL leaves the connections. *)
Restart(m, kind, M) ==
  /\ kind \in Losses /\ budget.losses > 0
  /\ master' = [master EXCEPT ![m] = Admitted(M)]
  /\ budget' = [budget EXCEPT !.losses = @ - 1, !.inc = IF master'[m].inc = @ THEN @ + 1 ELSE @]
  /\ link' = [d \in Daemons |-> [link[d] EXCEPT ![m] = Anew(d, m)]]
  /\ req' = [d \in Daemons |-> Void(d, m)] /\ UNCHANGED <<hybrid, last>>
Older(M) == [Blank(M) EXCEPT !.inc = M.inc, !.young = M.young]
Flushall(m) ==
  /\ "flushall" \in Losses /\ budget.losses > 0 /\ budget' = [budget EXCEPT !.losses = @ - 1]
  /\ master' = [master EXCEPT ![m] = Blank(@)] /\ UNCHANGED <<link, req, hybrid, last>>

Split(d, m) == \/ "split" \in Losses /\ budget.losses > 0 /\ Flush(d, m, -1, FALSE) /\ budget' = [budget EXCEPT !.losses = @ - 1]
               \/ "renamed" \in Losses /\ budget.losses > 0 /\ Flush(d, m, 0, TRUE) /\ budget' = [budget EXCEPT !.losses = @ - 1, !.inc = @ + 1]
               \/ \E by \in Steps : budget.steps > 0 /\ Flush(d, m, by, FALSE) /\ budget' = [budget EXCEPT !.steps = @ - 1]
Next ==
  \/ \E d \in Daemons : Ask(d) \/ Grant(d) \/ Raise(d) \/ GiveUp(d) \/ Release(d) \/ Extend(d) \/ Extended(d)
  \/ \E d \in Daemons, m \in Masters : Flush(d, m, 0, FALSE) /\ UNCHANGED budget
  \/ \E m \in Faulty : \/ \E d \in Daemons : Split(d, m) \/ Reconnect(d, m)
                       \/ \E by \in Steps : Step(m, by)
                       \/ Gain(m) \/ Flushall(m) \/ Restart(m, "blank", Blank(master[m])) \/ Restart(m, "older", Older(master[m]))
  \/ Tick
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Masters \ Faulty) \cup Permutations(Daemons)

(* The promises of PROOF.md. *)
Exclusion == \A c, d \in Daemons : Holds(c) /\ Holds(d) => c = d
Granted(d) == req[d].st = "asking" /\ req'[d].st = "held"
Fences == [][\A d \in Daemons : Granted(d) => last'.fence > req[d].asked]_vars        \* for any clocks
Rising == [][\A d \in Daemons : Granted(d) => last'.fence > last.fence]_vars
Continuity == [][\A d \in Daemons : req[d].again > 0 /\ req'[d].st = "held" /\ req'[d].rest > req[d].rest => last.tok = Token(d)]_vars
(* A quorum that says "not held" is an answer: no lease is left. *)
Truthful == \A d \in Daemons : Cardinality(req[d].absent) < Quorum
(* A lock that is over before its time has no copy left: what takes it back is on its way. *)
Tidy == \A m \in Masters : master[m].tok = Free \/ master[m].rest <= Late + Drift
          \/ LET d == master[m].tok[1] n == master[m].tok[2]
             IN (req[d].n = n /\ req[d].st # "idle") \/ \E i \in DOMAIN link[d][m].queue : link[d][m].queue[i].n = n
=============================================================================
