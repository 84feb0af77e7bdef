----------------------------- MODULE Membership ------------------------------
(* Changes of the list of masters while daemons serve: pool/epoch.go, pool/evidence.go, *)
(* pool/setup/rename.go and rivals.go. Some daemons have an old list, or start with it again. *)
(* There are no clocks here: what lasts for the longest lease lasts until all leases (and requests) *)
(* that ran when it began are over, which is sooner. *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  Daemons,
  World,    \* which lists there are
  Losses,   \* how a master's memory may be lost, once: "blank", "file" (an older one), "backup" (of a durable master)
  Reached,  \* TRUE: a daemon reaches all masters of its list; FALSE: any of them
  Without   \* the rules that a negative control leaves out

VARIABLES
  master,   \* what it carries: the configuration, 0 = none; whether this process wrote it; the copy; the leases until whose end it does not vote
  daemon,   \* its configuration; its request or lease, and the masters that voted for it
  began,    \* configurations that are in force, or were
  rest,     \* leases until whose end there is no next change
  losses
vars == <<master, daemon, began, rest, losses>>

Has(rule) == rule \notin Without
(* Configurations: 1; 2, and its rival 3, which replace it; 4, which replaces 2. *)
Lists == CASE World = "replace" -> <<{"a", "b", "c"}, {"a", "b", "d"}, {}, {}>>
           [] World = "rivals" -> <<{"a", "b", "c", "d"}, {"a", "b", "c"}, {"b", "c", "d"}, {}>>
           [] World = "shrink" -> <<{"a", "b", "c", "d", "e"}, {"b", "c", "d", "e"}, {}, {"c", "d", "e"}>>
Configurations == {c \in 1..4 : Lists[c] # {}}
Masters == UNION {Lists[c] : c \in Configurations}
Former(c) == IF c = 4 THEN 2 ELSE 1
Epoch(c) == <<1, 2, 2, 3>>[c]
Quorum(c) == Cardinality(Lists[c]) \div 2 + 1
Nobody == "nobody"
Busy == {d \in Daemons : daemon[d].st # "idle"}
Idle(c) == [conf |-> c, st |-> "idle", votes |-> {}]

Init ==
  /\ master = [m \in Masters |-> [conf |-> IF m \in Lists[1] THEN 1 ELSE 0, own |-> TRUE, copy |-> Nobody, young |-> {}]]
  /\ daemon = [d \in Daemons |-> Idle(1)]
  /\ began = {1} /\ rest = {} /\ losses = 1

(* What counts of a master's memory: lane.noteSealLocked. An older file shows nothing of the changes since. *)
Carries(m, c) == master[m].conf = c /\ (master[m].own \/ ~Has("older-file"))
Blank(m) == master[m].conf = 0 \/ (~master[m].own /\ Has("older-file"))
Bearers(c, l) == {m \in l : Carries(m, c)}

(* Survey.Later: a daemon does nothing beside a master of its list that has a later configuration in force. *)
Later(c, l) == Has("later-epoch") /\ \E m \in l : ~Blank(m) /\ master[m].conf \in began /\ Epoch(master[m].conf) > Epoch(c)
Serves(d) == ~(Reached /\ Later(daemon[d].conf, Lists[daemon[d].conf]))

-----------------------------------------------------------------------------
(* A vote is under a seal with the daemon's configuration, of a memory that is old enough: Lock has the rest. *)
Ask(d) == daemon[d].st = "idle" /\ daemon' = [daemon EXCEPT ![d].st = "asking"] /\ UNCHANGED <<master, began, rest, losses>>
Vote(d, m) ==
  LET c == daemon[d].conf IN
  /\ daemon[d].st = "asking" /\ m \in Lists[c] /\ Serves(d)
  /\ Carries(m, c) /\ master[m].copy = Nobody /\ master[m].young = {}
  /\ master' = [master EXCEPT ![m].copy = d]
  /\ daemon' = [daemon EXCEPT ![d].votes = @ \cup {m}]
  /\ UNCHANGED <<began, rest, losses>>
Grant(d) ==
  /\ daemon[d].st = "asking" /\ Cardinality(daemon[d].votes) >= Quorum(daemon[d].conf)
  /\ daemon' = [daemon EXCEPT ![d].st = "held"]
  /\ UNCHANGED <<master, began, rest, losses>>
(* A lease ends, or a request that got none. *)
End(d) ==
  /\ daemon[d].st # "idle"
  /\ daemon' = [daemon EXCEPT ![d] = Idle(@.conf)]
  /\ master' = [m \in Masters |-> [master[m] EXCEPT !.copy = IF @ = d THEN Nobody ELSE @, !.young = @ \ {d}]]
  /\ rest' = rest \ {d}
  /\ UNCHANGED <<began, losses>>

(* Group.learnEpochLocked, Survey.Next: a quorum of the list that it replaced carries the next configuration. *)
Follow(d, c) ==
  /\ c # 1 /\ daemon[d].conf = Former(c) /\ daemon[d].st # "asking"
  /\ Cardinality(Bearers(c, Lists[Former(c)])) >= IF Has("in-force") THEN Quorum(Former(c)) ELSE 1
  /\ daemon' = [daemon EXCEPT ![d].conf = c]
  /\ UNCHANGED <<master, began, rest, losses>>
(* It starts again, with the first list in its file. Its lease goes on. *)
Start(d) == daemon[d].st # "asking" /\ daemon[d].conf # 1 /\ daemon' = [daemon EXCEPT ![d].conf = 1] /\ UNCHANGED <<master, began, rest, losses>>

(* evidence.mayNotBegin: a daemon puts its configuration on a blank master only while a quorum of its list carries it. *)
Begin(d, m) ==
  LET c == daemon[d].conf IN
  /\ m \in Lists[c] /\ Blank(m) /\ Serves(d)
  /\ Has("claims") => Cardinality(Bearers(c, Lists[c]) \ {m}) >= Quorum(c)
  /\ master' = [master EXCEPT ![m] = [conf |-> c, own |-> TRUE, copy |-> Nobody, young |-> Busy]]
  /\ UNCHANGED <<daemon, began, rest, losses>>

-----------------------------------------------------------------------------
(* rivals.go: a change has lost if so many masters of the former list carry one of higher order that the *)
(* others are no quorum. *)
HasLost(c) == LET higher == {m \in Lists[Former(c)] : \E r \in Configurations : r > c /\ Epoch(r) = Epoch(c) /\ Carries(m, r)}
              IN Cardinality(higher) > Cardinality(Lists[Former(c)]) - Quorum(Former(c))
(* change.renameAll, rename.lua: memory stays. A change begins when the former one has rested. *)
Rename(c, m) ==
  LET was == master[m].conf IN
  /\ c # 1 /\ m \in Lists[Former(c)] /\ Former(c) \in began /\ (Has("rest") => c \in began \/ rest = {})
  /\ \/ Carries(m, Former(c))
     \/ Has("take-over") /\ was # 0 /\ was < c /\ Epoch(was) = Epoch(c) /\ Carries(m, was) /\ (HasLost(was) \/ ~Has("rivals"))
  /\ master' = [master EXCEPT ![m].conf = c, ![m].own = TRUE]
  /\ began' = IF Cardinality(Bearers(c, Lists[Former(c)]) \cup {m}) >= Quorum(Former(c)) THEN began \cup {c} ELSE began
  /\ rest' = IF began' # began THEN Busy ELSE rest
  /\ UNCHANGED <<daemon, losses>>
(* change.beginNew: new masters come when the change is in force. Daemons do it, too: Begin. *)
BeginNew(c, m) ==
  /\ c # 1 /\ m \in Lists[c] /\ Blank(m)
  /\ Has("new-last") => c \in began /\ Cardinality(Bearers(c, Lists[c])) >= Quorum(c)
  /\ master' = [master EXCEPT ![m] = [conf |-> c, own |-> TRUE, copy |-> Nobody, young |-> Busy]]
  /\ UNCHANGED <<daemon, began, rest, losses>>

(* A master comes back blank; with a file from before the change; or durable, with a backup, which it takes for its own. *)
Lose(m) ==
  /\ losses > 0 /\ losses' = 0
  /\ \/ "blank" \in Losses /\ master' = [master EXCEPT ![m] = [conf |-> 0, own |-> TRUE, copy |-> Nobody, young |-> Busy]]
     \/ "file" \in Losses /\ m \in Lists[1] /\ master' = [master EXCEPT ![m] = [conf |-> 1, own |-> FALSE, copy |-> Nobody, young |-> Busy]]
     \/ "backup" \in Losses /\ m \in Lists[1] /\ master' = [master EXCEPT ![m] = [conf |-> 1, own |-> TRUE, copy |-> Nobody, young |-> Busy]]
  /\ UNCHANGED <<daemon, began, rest>>

Next == \/ \E d \in Daemons : \/ Ask(d) \/ Grant(d) \/ End(d) \/ Start(d)
                              \/ \E m \in Masters : Vote(d, m) \/ Begin(d, m)
                              \/ \E c \in Configurations : Follow(d, c)
        \/ \E m \in Masters : Lose(m) \/ \E c \in Configurations : Rename(c, m) \/ BeginNew(c, m)
Spec == Init /\ [][Next]_vars
(* The operators run their commands again and again. *)
Fair == Spec /\ \A c \in Configurations, m \in Masters : WF_vars(Rename(c, m))
Symmetry == Permutations(Daemons)

-----------------------------------------------------------------------------
Exclusion == \A d, e \in Daemons : daemon[d].st = "held" /\ daemon[e].st = "held" => d = e
(* Of two changes to one epoch at most one is ever in force, and if both are tried again, one is. *)
OneWins == \A b, c \in began : Epoch(b) = Epoch(c) => b = c
Settles == <>(\E c \in began : c # 1)
(* quorum/tally.go: a refusal takes a quorum. A release or an extension, through any daemon, of a lease that *)
(* runs is not answered with "not held". *)
Refusal(c) == IF Has("refusal") THEN Quorum(c) ELSE Cardinality(Lists[c]) - Quorum(c) + 1
Truthful == \A d, e \in Daemons : daemon[d].st = "held" /\ Serves(e) =>
  Cardinality({m \in Lists[daemon[e].conf] : Carries(m, daemon[e].conf) /\ master[m].young = {} /\ master[m].copy # d}) < Refusal(daemon[e].conf)
=============================================================================
