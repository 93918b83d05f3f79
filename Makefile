# A newcomer needs only make test. Run make check before every commit.

GO         ?= go
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.2.0

# Further modules, which keep their dependencies out of this one.
MODULES = cmd/bench cmd/latchkey store/goredisstore store/rueidisstore internal/browser internal/faults internal/frameworks internal/migration

.PHONY: test servers test-servers simulate simulate-broken faults soak check fuzz e2e bench setup

# All tests, with the race detector, on the embedded Redis and on a real one.
test: setup
	$(GO) test -race -shuffle=on ./...
	$(GO) test -count=1 ./middleware/differential -all # all modes: too slow with -race
	cd cmd/bench && $(GO) test -race -shuffle=on ./...
	cd cmd/latchkey && $(GO) test -race -shuffle=on -parallel 6 ./...
	cd store/goredisstore && $(GO) test -race -shuffle=on -parallel 6 ./... # most wait two seconds for a cluster
	cd store/rueidisstore && $(GO) test -race -shuffle=on -parallel 6 ./...
	cd internal/frameworks && $(GO) test -race -shuffle=on ./...
	cd internal/migration && $(GO) test -race -shuffle=on ./...
	$(GO) test -count=1 -run "^TestSimulation$$" ./internal/simulation -operations 100000 # more, at full speed
	$(GO) test -count=1 -v -run "^TestProtocol$$" ./internal/simulation/model -all # every state: prints what it has seen

# The same promises on the servers that others use: Valkey 8 and 9, Redis 8. servers gets them
# from Debian into bin/servers, without installing them; test-servers runs what needs a real
# server on each, in two minutes a server, and prints a table.
servers:
	@.ci/servers

test-servers: setup
	@.ci/test-servers

# Latchkey in fake time, with all faults: N requests, from SEED on, with one PROFILE or all.
# SEED brings a run back, and so does PLAN, a file that a failure has written to bin/simulate.
# If it does not, EXACTLY=1 does: it builds a Go runtime that leaves nothing to chance.
# simulate-broken shows that the simulation finds what is broken on purpose.
N ?= 3000000
simulate:
	@mkdir -p bin/simulate
	$(GO) test -count=1 -timeout 0 -run '^TestSimulation$$' ./internal/simulation -operations $(N) $(if $(EXACTLY),-exactly) \
	  -saved $(CURDIR)/bin/simulate -seed $(or $(SEED),0) $(if $(PROFILE),-profile "$(PROFILE)") $(if $(PLAN),-plan $(abspath $(PLAN)))

simulate-broken:
	$(GO) test -count=1 -timeout 2h -v -run '^TestBroken$$' ./internal/simulation -broken $(if $(SEED),-seed $(SEED))

# Every promise under attack, with real processes: about six minutes, or half of that with
# SHORT=1. SKIP=… leaves out tests with such names, SEED=… makes the visitors send the same
# requests. Logs of failures are kept in bin/faults.
faults: setup
	@mkdir -p bin/faults
	$(GO) test -count=1 -run '^TestAMillionForgedCookies$$' ./middleware # with -race it tries fewer
	$(GO) test ./internal/history
	cd internal/faults && \
	  $(GO) test -count=1 -timeout 40m -all -parallel 3 -artifacts -outputdir $(CURDIR)/bin/faults $(if $(SHORT),-short,-markdown results.md) $(if $(SKIP),-skip $(SKIP)) $(if $(SEED),-seed $(SEED))

# Random faults for ten minutes, or for another SOAK, such as 1h. With OPERATIONS=10000000
# until as many requests have succeeded, without the race detector: that takes half an hour.
SOAK ?= 10m
OPERATIONS ?= 0
soak: setup
	$(GO) test $(if $(filter 0,$(OPERATIONS)),-race) -tags soak -run '^TestSoak$$' -count=1 -timeout 0 -v \
	  ./store -soak $(SOAK) -operations $(OPERATIONS)

# Finds or installs what the tests need besides Go.
setup:
	@.ci/setup

# Format, vet, static analysis, import rules, known vulnerabilities; and whether the defects
# that other suites make on purpose still fit the sources.
check:
	@.ci/format
	$(GO) vet ./...
	$(STATICCHECK) ./...
	@for module in $(MODULES); do \
	  echo "$$module: vet, staticcheck"; \
	  (cd $$module && $(GO) vet ./... && $(STATICCHECK) ./...) || exit 1; \
	done
	@.ci/imports
	$(GO) test -count=1 -run '^TestDefectsApply$$' ./internal/simulation
	cd internal/faults && $(GO) test -count=1 -run '^TestDefectsApply$$' .
	@for module in . $(MODULES); do \
	  echo "$$module: known vulnerabilities"; \
	  (cd $$module && $(CURDIR)/.ci/vulnerabilities $(GOVULNCHECK) ./...) || exit 1; \
	done

# Each fuzz target for a minute.
fuzz:
	@.ci/fuzz 1m

# The demo's page, and sessions, in a real browser.
e2e: setup
	@.ci/chromium
	cd internal/browser && $(GO) test -count=1 -shuffle=on ./...

# Latchkey compared with its peers; see cmd/bench. It takes about ten minutes. With
# AGAINST=DIR it is compared with another checkout of itself, which takes six.
bench: setup
	cd cmd/bench && $(GO) run . $(if $(AGAINST),-against $(abspath $(AGAINST)),-markdown results.md -chart hot.svg)
