# What a contributor types. `make test` works on a fresh machine with Go alone:
# it installs what the tests need.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Enough for the slowest package on two cores under -race.
TIMEOUT     ?= 12m

.PHONY: run test test-go test-bench lint fmt bench fuzz interop crowd needs

run:
	$(GO) run .

# The tests drive real redis-server processes and build a small clock shim with
# cc; without cc the tests of stepping clocks are skipped and say so.
needs:
	@command -v redis-server >/dev/null 2>&1 || sh .ci/install-redis

test: needs test-go test-bench

test-go:
	$(GO) vet ./...
	$(GO) vet -tags controls ./...
	$(GO) test -race -timeout $(TIMEOUT) ./...

# Peers live in a module of their own, so that they never enter the product's.
test-bench: needs
	cd bench && $(GO) vet ./... && $(GO) test -timeout $(TIMEOUT) ./...

lint:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

fmt:
	gofmt -w .

bench: needs
	cd bench && $(GO) run . $(ARGS)

# Clients that say nothing, and clients that do their worst: what they cost.
crowd: needs
	cd bench && BENCH_CROWD=1 $(GO) test -run Crowd -v -timeout $(TIMEOUT) .

# Every client library against a daemon on real masters; installs what is missing.
interop: needs
	.ci/interop $(ARGS)

# Every fuzz target for FUZZTIME each.
FUZZTIME ?= 30s
fuzz:
	FUZZTIME=$(FUZZTIME) sh .ci/fuzz
