# What a contributor types. `make test` works on a fresh machine with Go alone:
# it installs what the tests need.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Ends a package that hangs. It must never end one that is slow: two cores beside
# twenty busy loops take ten times as long as two quiet ones.
TIMEOUT     ?= 60m
# Further flags of `go test`.
GOTEST      ?=

# How many packages are built or tested at a time.
ATONCE      ?= 4
# Prints a line every ten seconds while the command behind it runs.
PROGRESS     = "$(CURDIR)"/.ci/progress

.PHONY: run test test-unit test-go test-race test-sim test-bench test-long test-processes test-worlds test-release test-under-load evidence evidence-own evidence-others release profile lint fmt bench bench-quick counters golden fuzz interop other-masters crowd chaos soak sim spec mutants mutation-e2e sim-vs-redis page upgrade needs dependencies

run:
	$(GO) run .

# The tests drive real redis-server processes and build a small clock shim with
# cc; without cc the tests of stepping clocks are skipped with a message.
needs:
	@command -v redis-server >/dev/null 2>&1 || sh .ci/install-redis

# Minutes. What takes longer is evidence.
test: needs test-go

# Seconds: everything that needs no process, in every package that has such tests. The longest
# simulations and what builds programs are left out.
test-unit:
	REDLOCKD_UNIT=1 $(PROGRESS) $(GO) test -short -vet=off -timeout $(TIMEOUT) -skip '^Test(Waits|Worlds|Mutants_Compile)' $(GOTEST) $$($(GO) list ./... | grep -vE '/(pool/faulty|proxy/daemon|proxy/contract|redlock/chaos)$$')

# vet has run before, no debugger needs symbols, and without GORACE each binary sleeps a second
# at its end. A simulated world is one goroutine after another: the detector of races finds
# nothing there and takes eight times as long; test-long has it where worlds run side by side.
test-go:
	$(PROGRESS) $(GO) vet ./...
	$(MAKE) -j 2 test-race test-sim

# More packages and tests run at a time than there are cores: most of them wait. The slowest
# packages begin first.
test-race:
	GORACE="atexit_sleep_ms=50 $$GORACE" $(PROGRESS) $(GO) test -race -short -vet=off -ldflags=-w -p $(ATONCE) -parallel 8 -timeout $(TIMEOUT) $(GOTEST) ./redlock ./proxy/daemon $$($(GO) list ./... | grep -v /redlock/sim$$)

test-sim:
	$(PROGRESS) $(GO) test -short -vet=off -ldflags=-w -timeout $(TIMEOUT) $(GOTEST) ./redlock/sim

# The evidence for the product that takes longer than a contributor waits: the specification,
# rules and seeded bugs that the tests must notice, other servers, libraries, browsers, fuzzing, an
# upgrade, and four mixes of faults, drawn at random, a minute each. Two halves run side by side,
# one that computes and one that mostly waits; each piece prints at its end.
evidence: needs
	$(PROGRESS) $(MAKE) -j 2 --output-sync evidence-own evidence-others

evidence-own:
	$(MAKE) spec
	.ci/dependencies verify
	$(MAKE) test-long
	$(MAKE) test-bench
	$(MAKE) counters
	$(MAKE) fuzz FUZZTIME=5s

# Programs of others, and processes under faults.
evidence-others:
	$(MAKE) other-masters
	$(MAKE) interop
	$(MAKE) page
	$(MAKE) upgrade
	$(MAKE) chaos MIX=4 MINUTES=4

# The tests that `make test` leaves out: beside processes, which are waited for, worlds are simulated.
test-long: needs
	$(MAKE) -j 2 --output-sync test-processes test-worlds
	$(MAKE) test-release

test-processes:
	$(PROGRESS) $(GO) test -race -timeout $(TIMEOUT) -run '^Test(Controls|Follow_ThreeMasters|Storm|Work_Soak|MutationE2E_AMutant|Chaos_|Exclusion|Hold_EndsWithItsLease|Upgrade_)' $(GOTEST) ./redlock ./redlock/chaos
	$(PROGRESS) $(GO) test -timeout $(TIMEOUT) -run '^TestCoverage_' $(GOTEST) ./proxy/daemon
	cd bench && $(PROGRESS) $(GO) test -timeout $(TIMEOUT) -run '^TestMixedFleet_' $(GOTEST) .

test-worlds:
	$(PROGRESS) $(GO) test -race -timeout $(TIMEOUT) -run '^TestSimulation' $(GOTEST) ./redlock/sim
	$(PROGRESS) $(GO) test -timeout $(TIMEOUT) -run '^Test(Mutants|Waits|Worlds|RoundTrips|SlotMoves|Masters|Linear|Check_Rejects)' $(GOTEST) ./redlock/sim ./redlock/checker

test-release:
	cd .ci/release && $(GO) vet . && $(PROGRESS) $(GO) test -timeout $(TIMEOUT) $(GOTEST) .

# Peers and examples live in modules of their own, so that what they need never
# enters the product's.
test-bench: needs
	cd bench && $(GO) vet ./... && $(PROGRESS) $(GO) test -short -timeout $(TIMEOUT) $(GOTEST) ./...
	cd redlock/examples && $(GO) vet ./... && $(PROGRESS) $(GO) test -timeout $(TIMEOUT) $(GOTEST) ./...

# The same tests beside LOAD busy loops, RUNS times: no test may depend on how fast
# the machine is.
LOAD ?= 20
RUNS ?= 1
test-under-load: needs
	@for run in $$(seq $(RUNS)); do .ci/under-load $(LOAD) 7200 $(MAKE) test GOTEST=-count=1 || exit 1; done

# In dist/: static binaries for Linux and macOS, deb and rpm, an image, the packages of clients,
# a list of what is in them (SBOM), licences, checksums and, with KEY (a file of minisign), their
# signature. VERSION is the one of CHANGELOG.md, with -dev and the commit unless that has its
# tag. profile renews the profile by which binaries are optimized, after changes of the hot path.
release:
	$(PROGRESS) $(GO) -C .ci/release run . -version "$(VERSION)" -key "$(if $(KEY),$(abspath $(KEY)))"

profile: needs
	cd bench && $(PROGRESS) $(GO) run . -profile ../configs/profile.pgo -seconds 3

# What the product and its tests are made of: as go.sum names it, known vulnerabilities (skipped
# with a message without their database), and what has a later version.
dependencies:
	$(PROGRESS) .ci/dependencies

lint:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(PROGRESS) $(GO) vet ./...
	$(PROGRESS) $(GO) run $(STATICCHECK) ./...

fmt:
	gofmt -w .

# Every figure side by side with its peers, at most half an hour: writes
# bench/RESULTS.md and its charts. ARGS="-only REGEXP" runs a part of it, ARGS="-dir
# DIR" keeps the masters' files elsewhere. Quick is what is promised, in three minutes.
bench: needs
	cd bench && ./install-peers && $(PROGRESS) $(GO) run . $(ARGS)

bench-quick: needs
	cd bench && $(PROGRESS) $(GO) run . -quick -rounds 4 -seconds 0.5 $(ARGS)

# What does not depend on the machine: flushes, system calls, allocations, bytes.
counters: needs
	$(PROGRESS) $(GO) test -run Counters -count=1 -v -timeout $(TIMEOUT) ./redlock ./proxy

# Writes the golden files of everything that users depend on, and commands/REFERENCE.md. Without it a difference
# fails the tests: read what `git diff` shows, and name the change in CHANGELOG.md.
golden:
	REDLOCKD_UPDATE=1 $(GO) test -count=1 ./proxy/contract
	REDLOCKD_UPDATE=1 $(PROGRESS) $(GO) test -count=1 -run Reference ./commands

# The cost of clients that send nothing, and of clients that do their worst.
crowd: needs
	cd bench && BENCH_CROWD=1 $(PROGRESS) $(GO) test -run Crowd -v -timeout $(TIMEOUT) .

# Every client library against a daemon on real masters; installs what is missing.
interop: needs
	$(PROGRESS) .ci/interop $(ARGS)

# The tests that drive real masters, on the oldest Redis that is supported and the
# newest Valkey; installs them beside the tree. ARGS are packages.
other-masters:
	$(PROGRESS) .ci/other-masters $(ARGS)

# The page of the admin endpoint as a browser shows it, on real masters; installs
# Chromium when it is missing. PAGE_SHOTS=DIR keeps pictures.
page: needs
	@command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || sh proxy/admin/browser/install-chromium
	cd proxy/admin/browser && $(GO) vet ./... && \
		PAGE_SHOTS=$(if $(PAGE_SHOTS),$(abspath $(PAGE_SHOTS))) $(PROGRESS) $(GO) test -count=1 -timeout $(TIMEOUT) ./...

# Every fuzz target for FUZZTIME each.
FUZZTIME ?= 30s
fuzz:
	FUZZTIME=$(FUZZTIME) $(PROGRESS) sh .ci/fuzz

# Daemons and masters as processes, and everything that may happen to them, for
# MINUTES of load. MIX is all mixes of faults, or one of them, or a number: so many,
# drawn at random. SEED repeats a run as far as processes let themselves be repeated;
# what failed, and its seed, are repeated at the end of the output. CHAOS_PUBLISH=1
# puts the table into redlock/chaos/RESULTS.md, if nothing failed.
chaos: needs
	CHAOS_MINUTES=$(or $(MINUTES),6) CHAOS_MIX="$(or $(MIX),all)" CHAOS_SEED=$(SEED) \
		$(PROGRESS) $(GO) test -run 'TestChaos$$' -count=1 -v -timeout $$(($(or $(MINUTES),6) * 2 + 15))m ./redlock/chaos

# The daemons of another commit and of this one, side by side on one group of masters,
# while clients work: an upgrade, daemon by daemon, and the way back. UPGRADE_FROM is the
# other commit; without it the last two tags or, without tags, the commit before. UPGRADE_MUTANT
# names a seeded bug of the new daemons, which the run must notice.
upgrade: needs
	@for from in $(or $(UPGRADE_FROM),$(shell git tag --list 'v*' --sort=-v:refname --merged HEAD~1 2>/dev/null | head -n 2),last); do \
		CHAOS_UPGRADE_FROM="$$from" CHAOS_UPGRADE_MUTANT="$(UPGRADE_MUTANT)" CHAOS_SEED=$(SEED) \
			$(PROGRESS) $(GO) test -run 'TestUpgrade$$' -count=1 -v -timeout 15m ./redlock/chaos || exit 1; done

# The same load again and again for MINUTES: nothing may grow.
soak: needs
	CHAOS_SOAK_MINUTES=$(or $(MINUTES),3) CHAOS_SEED=$(SEED) \
		$(PROGRESS) $(GO) test -run TestSoak -count=1 -v -timeout $$(($(or $(MINUTES),3) * 2 + 15))m ./redlock/chaos

# The product against simulated faults, 10^8 executions or half an hour, whichever
# comes first; the table goes into redlock/sim/RESULTS.md. What it prints when a promise
# is broken plays that world again: SIM_SCENARIO=... SIM_SEED=... make sim
sim:
	SIM_EXECUTIONS=$${SIM_EXECUTIONS:-100000000} SIM_SECONDS=$${SIM_SECONDS:-1800} SIM_PUBLISH=$${SIM_PUBLISH:-1} \
		$(GO) test -run TestSimulation -count=1 -v -timeout 40m ./redlock/sim

# The protocol as a specification in TLA+, checked by TLC in small worlds: every world keeps the
# promises, every negative control breaks one. Installs TLC beside the tree, or TLA2TOOLS is the
# path of tla2tools.jar. WORLDS names some; SPEC_PUBLISH=1 writes the table of
# redlock/spec/README.md.
spec:
	$(PROGRESS) .ci/spec $(WORLDS)

# Seeded bugs: each must be caught by the simulation. SIM_MUTANTS names some.
mutants:
	SIM_MUTANTS="$${SIM_MUTANTS:-all}" $(PROGRESS) $(GO) test -run TestMutants -count=1 -v -timeout 120m ./redlock/sim

# The same bugs in daemons as processes, with faults: two at a time, a minute each at
# most; the table goes into redlock/mutants/RESULTS.md. E2E_MUTANTS names some.
mutation-e2e: needs
	E2E_MUTANTS="$${E2E_MUTANTS:-all}" $(PROGRESS) $(GO) test -run TestMutationE2E_MutantsAreCaught -count=1 -v -timeout 150m ./redlock/chaos

# The simulated masters against redis-server, a million operations.
sim-vs-redis: needs
	SIM_DIFFERENTIAL=$${SIM_DIFFERENTIAL:-1000000} $(PROGRESS) $(GO) test -run TestMasters -count=1 -v -timeout 60m ./redlock/sim
