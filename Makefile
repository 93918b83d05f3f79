# make test is all that a newcomer needs; make check before every commit.

GO         ?= go
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.2.0

# The packages of this module; ./... leaves testdata out.
PACKAGES = ./... ./testdata/overlay ./testdata/redistest ./testdata/quickstart

# The modules of their own, which keep their dependencies out of this one.
MODULES = cmd/bench cmd/demo/e2e cmd/faults cmd/simulate testdata/goredis

.PHONY: test simulate simulate-broken faults soak check fuzz e2e bench experiment setup

# Everything, with the race detector, on the embedded Redis and on a real one.
test: setup
	$(GO) test -race -shuffle=on $(PACKAGES)
	cd cmd/bench && $(GO) test -race -shuffle=on ./...
	cd testdata/goredis && $(GO) test -race -shuffle=on ./...
	cd cmd/simulate && $(GO) test -count=1 -race -shuffle=on ./...
	cd cmd/simulate && $(GO) test -count=1 . # the same at full speed
	cd cmd/simulate && $(GO) test -count=1 -v -run '^TestProtocol$$' ./model # tells what it has seen

# Latchkey in fake time, with all faults: until N requests were made, from SEED on, of one
# PROFILE or all. SEED brings back a run exactly, and so does PLAN, a file that a failure
# has written to bin/simulate. simulate-broken shows that what is broken on purpose is
# found.
N ?= 3000000
simulate:
	@mkdir -p bin/simulate
	cd cmd/simulate && $(GO) test -count=1 -timeout 0 -run '^TestSimulation$$' . -exactly -operations $(N) \
	  -saved $(CURDIR)/bin/simulate $(if $(SEED),-seed $(SEED)) $(if $(PROFILE),-profile "$(PROFILE)") $(if $(PLAN),-plan $(abspath $(PLAN)))

simulate-broken:
	cd cmd/simulate && $(GO) test -count=1 -timeout 2h -v -run '^TestBroken$$' . -broken $(if $(SEED),-seed $(SEED))

# Every promise under attack, with real processes: some six minutes, or four with
# SHORT=1. SEED=… makes the visitors ask the same again. What explains a failure is
# kept in bin/faults.
faults: setup
	@mkdir -p bin/faults
	$(GO) test -count=1 -run '^TestAMillionForgedCookies$$' ./middleware # with -race it makes do with fewer
	cd cmd/faults && $(GO) test ./history ./rig && \
	  $(GO) test -count=1 -timeout 20m -artifacts -outputdir $(CURDIR)/bin/faults $(if $(SHORT),-short,-markdown results.md) $(if $(SEED),-seed $(SEED))

# Random faults for ten minutes, or for SOAK=1h, say. With OPERATIONS=10000000 until so
# many requests have succeeded, without the race detector: that takes half an hour.
SOAK ?= 10m
OPERATIONS ?= 0
soak: setup
	$(GO) test $(if $(filter 0,$(OPERATIONS)),-race) -tags soak -run '^TestSoak$$' -count=1 -timeout 0 -v \
	  ./store -soak $(SOAK) -operations $(OPERATIONS)

# What the tests need besides Go: found, or installed.
setup:
	@.ci/setup

# Format, vet, static analysis, import rules, known vulnerabilities.
check:
	@.ci/format
	$(GO) vet $(PACKAGES)
	$(STATICCHECK) $(PACKAGES)
	@for module in $(MODULES); do \
	  echo "$$module: vet, staticcheck"; \
	  (cd $$module && $(GO) vet ./... && $(STATICCHECK) ./...) || exit 1; \
	done
	@.ci/imports
	@.ci/vulnerabilities $(GOVULNCHECK) ./...

# Each fuzz target for a minute.
fuzz:
	@.ci/fuzz 1m

# The demo's page in a real browser.
e2e: setup
	@.ci/chromium
	cd cmd/demo/e2e && $(GO) test -count=1 ./...

# Latchkey beside its peers; see cmd/bench. It takes some ten minutes.
bench: setup
	cd cmd/bench && $(GO) run . -markdown results.md -plots .

# How long to sleep between two tries for a lock.
experiment: setup
	cd cmd/bench && $(GO) run . -experiment -svg sleep.svg -markdown sleep.md
