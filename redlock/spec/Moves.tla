-------------------------------- MODULE Moves --------------------------------
(* Slots that move between groups of masters while daemons serve: pool/setup/moves.go, side.go, carry.go. *)
(* A change of one group's configuration is one step here: Membership has how a quorum gets it, and why of *)
(* two at once only one does. So is what all daemons of a group grant under one configuration: Lock, Ids. *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  Operators,
  Runs,     \* how many commands there are in all
  Uses,     \* how many locks are granted, and ids given, in all
  Others,   \* how many changes of groups there are beside moves, as of their masters
  Without   \* the rules that a negative control leaves out

VARIABLES
  group,    \* its configuration: epoch, slots, MapVersion; its last cut: Leaving, To, LeftAt
  data,     \* of a group: its highest register, and the counter of each slot
  leases,   \* of a slot: the groups that granted a lease that still runs
  operator, \* what a run of the command has seen, and where it is
  used,     \* ghost: of a slot, the highest fence and the highest id; what went wrong
  budget
vars == <<group, data, leases, operator, used, budget>>

Has(rule) == rule \notin Without
Groups == {"g1", "g2"}
Slots == {"s", "t"}
Max(a, b) == IF a > b THEN a ELSE b
Idle == [at |-> "idle", slot |-> "", to |-> "", source |-> "", epoch |-> 0, version |-> 0, counter |-> 0, register |-> 0]

Init ==
  /\ group = [g \in Groups |-> [epoch |-> 1, slots |-> IF g = "g1" THEN {"s"} ELSE {"t"}, version |-> 0, leaving |-> "", to |-> "", leftAt |-> 0]]
  /\ data = [g \in Groups |-> [register |-> 0, counter |-> [s \in Slots |-> 0]]]
  /\ leases = [s \in Slots |-> {}]
  /\ operator = [o \in Operators |-> Idle]
  /\ used = [fence |-> [s \in Slots |-> 0], id |-> [s \in Slots |-> 0], wrong |-> {}]
  /\ budget = [runs |-> Runs, uses |-> Uses, others |-> Others]

-----------------------------------------------------------------------------
(* What is granted and given under the configuration of a group: groups/map.go. A group excludes by itself, *)
(* and its fences and ids rise by themselves. *)
Grant(g, s) ==
  LET fence == data[g].register + 1 IN
  /\ s \in group[g].slots /\ g \notin leases[s] /\ budget.uses > 0
  /\ budget' = [budget EXCEPT !.uses = @ - 1]
  /\ leases' = [leases EXCEPT ![s] = @ \cup {g}]
  /\ data' = [data EXCEPT ![g].register = fence]
  /\ used' = [used EXCEPT !.fence[s] = Max(@, fence), !.wrong = IF fence > used.fence[s] THEN @ ELSE @ \cup {"fence"}]
  /\ UNCHANGED <<group, operator>>
End(g, s) == g \in leases[s] /\ leases' = [leases EXCEPT ![s] = @ \ {g}] /\ UNCHANGED <<group, data, operator, used, budget>>
NextId(g, s) ==
  LET id == data[g].counter[s] + 1 IN
  /\ s \in group[g].slots /\ budget.uses > 0
  /\ budget' = [budget EXCEPT !.uses = @ - 1]
  /\ data' = [data EXCEPT ![g].counter[s] = id]
  /\ used' = [used EXCEPT !.id[s] = Max(@, id), !.wrong = IF id > used.id[s] THEN @ ELSE @ \cup {"id"}]
  /\ UNCHANGED <<group, leases, operator>>

-----------------------------------------------------------------------------
(* slotMove.waiting: a group gave the slot up, and no other one has had it since. *)
Waits(g) == LET s == group[g].leaving IN
  /\ s # "" /\ ~\E h \in Groups \ {g} : s \in group[h].slots \/ (group[h].leaving = s /\ group[h].leftAt > group[g].leftAt)
(* slotMove.frozen: the last cut of the slot. *)
Cuts(s) == {g \in Groups : group[g].leaving = s}
Last(s) == CHOOSE g \in Cuts(s) : \A h \in Cuts(s) : group[h].leftAt <= group[g].leftAt
Frozen(s, to) == IF Cuts(s) = {} THEN "" ELSE IF group[Last(s)].to = to /\ Last(s) # to THEN Last(s) ELSE ""
NextVersion == 1 + Max(group["g1"].version, group["g2"].version)               \* slotMove.nextVersion
Owner(s) == {g \in Groups : s \in group[g].slots}

(* MoveSlots: what the command finds. slotMove.mayCut: nothing waits in either group. *)
Find(o, s, to) ==
  LET from == CHOOSE g \in Groups : g # to
      seen == [Idle EXCEPT !.slot = s, !.to = to, !.source = from]
  IN
  /\ operator[o].at = "idle" /\ budget.runs > 0 /\ budget' = [budget EXCEPT !.runs = @ - 1]
  /\ \/ Owner(s) = {from} /\ ~Waits(from) /\ ~Waits(to)
        /\ operator' = [operator EXCEPT ![o] = [seen EXCEPT !.at = "cut", !.epoch = group[from].epoch, !.version = NextVersion]]
     \/ Owner(s) = {} /\ Frozen(s, to) = from /\ operator' = [operator EXCEPT ![o] = [seen EXCEPT !.at = "freeze"]]
  /\ UNCHANGED <<group, data, leases, used>>

(* slotMove.cut: the source gives the slot up, if its configuration is still the one that was seen. *)
Cut(o) ==
  LET c == operator[o] IN
  /\ c.at = "cut" /\ group[c.source].epoch = c.epoch
  /\ group' = [group EXCEPT ![c.source] = [epoch |-> c.epoch + 1, slots |-> @.slots \ {c.slot}, version |-> c.version,
                                           leaving |-> c.slot, to |-> c.to, leftAt |-> c.version]]
  /\ operator' = [operator EXCEPT ![o].at = "freeze"]
  /\ UNCHANGED <<data, leases, used, budget>>

(* slotMove.freeze, lookAgain, stillWaits, side.readAll: the leases of before the cut are over; the cut is *)
(* still the last change of the slot; what the source has of it is read. *)
StillWaits(c) == Owner(c.slot) = {} /\ Frozen(c.slot, c.to) = c.source
Carry(o) ==
  LET c == operator[o]
      d == data[c.source] IN
  /\ c.at = "freeze" /\ (Has("freeze") => c.source \notin leases[c.slot])
  /\ group[c.source].leaving = c.slot /\ group[c.source].to = c.to
  /\ Has("late-operator") => StillWaits(c)
  /\ operator' = [operator EXCEPT ![o] = [c EXCEPT !.at = "switch", !.epoch = group[c.to].epoch, !.version = NextVersion,
                                                  !.counter = d.counter[c.slot], !.register = d.register]]
  /\ UNCHANGED <<group, data, leases, used, budget>>

(* side.install, change.run: a master of the target gets what is carried before the next configuration. A cut *)
(* of the target that is over stays in it, unless it was of this slot. *)
Switch(o) ==
  LET c == operator[o]
      T == group[c.to]
      over == T.leaving = c.slot
      here == data[c.to].counter[c.slot] IN
  /\ c.at = "switch" /\ T.epoch = c.epoch
  /\ group' = [group EXCEPT ![c.to] = [epoch |-> c.epoch + 1, slots |-> T.slots \cup {c.slot}, version |-> c.version,
       leaving |-> IF over THEN "" ELSE T.leaving, to |-> IF over THEN "" ELSE T.to,
       leftAt |-> IF over THEN 0 ELSE IF Has("cut-version") \/ T.leaving = "" THEN T.leftAt ELSE c.version]]
  /\ data' = [data EXCEPT ![c.to] = [register |-> IF Has("registers") THEN Max(@.register, c.register) ELSE @.register,
       counter |-> [@.counter EXCEPT ![c.slot] = IF ~Has("counters") \/ (~Has("stale-counters") /\ here > 0) THEN here ELSE c.counter]]]
  /\ operator' = [operator EXCEPT ![o] = Idle]
  /\ UNCHANGED <<leases, used, budget>>

(* It stops, for any reason. The same command finds what it left. *)
Stop(o) == operator[o].at # "idle" /\ operator' = [operator EXCEPT ![o] = Idle] /\ UNCHANGED <<group, data, leases, used, budget>>

(* Another change of a group, of its masters: the slots and the cut stay what they are. *)
Other(g) ==
  /\ budget.others > 0 /\ budget' = [budget EXCEPT !.others = @ - 1]
  /\ group' = [group EXCEPT ![g].epoch = @ + 1, ![g].leftAt = IF Has("cut-version") \/ group[g].leaving = "" THEN @ ELSE NextVersion,
                            ![g].version = IF Has("cut-version") THEN @ ELSE NextVersion]
  /\ UNCHANGED <<data, leases, operator, used>>

Next == \/ \E g \in Groups, s \in Slots : Grant(g, s) \/ End(g, s) \/ NextId(g, s)
        \/ \E o \in Operators : \/ \E s \in Slots, to \in Groups : Find(o, s, to)
                                \/ Cut(o) \/ Carry(o) \/ Switch(o) \/ Stop(o)
        \/ \E g \in Groups : Other(g)
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Operators)

-----------------------------------------------------------------------------
OneGroup == \A s \in Slots : Cardinality(Owner(s)) <= 1
Exclusion == \A s \in Slots : Cardinality(leases[s]) <= 1
Fences == "fence" \notin used.wrong
Unique == "id" \notin used.wrong
(* A move can be finished, wherever an operator stopped: some group has the slot, or may take it over. *)
Resumable == \A s \in Slots : Owner(s) # {} \/ \E to \in Groups : Frozen(s, to) # ""
=============================================================================
