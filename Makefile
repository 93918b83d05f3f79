# A newcomer needs only make test. Run make check before every commit.

GO         ?= go
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.2.0

# Further modules, which keep their dependencies out of this one.
MODULES = cmd/bench cmd/latchkey store/goredisstore store/rueidisstore internal/browser internal/faults internal/frameworks internal/migration

.PHONY: test test-all modules servers test-servers model simulate defects faults soak check fuzz e2e bench setup

# Every promise, in fake time and on one real Redis.
test: setup
	$(GO) test -race -shuffle=on ./...

# The rest, as CI runs it behind make test: a quarter of an hour. What each part is, and how long it
# takes, is in .ci/README.md.
test-all: setup
	$(GO) test -count=1 ./middleware/differential -all
	$(MAKE) modules
	$(MAKE) simulate N=1000000 SEED=1
	$(MAKE) model
	$(MAKE) test-servers
	$(MAKE) faults SHORT=1
	$(MAKE) e2e

# The tests of the other modules: both clients, on one server and on clusters, the operator's
# command, the benchmarks' own, frameworks, the move from other libraries.
modules: setup
	@.ci/nginx
	cd store/goredisstore && $(GO) test -race -shuffle=on ./... -cluster
	cd store/rueidisstore && $(GO) test -race -shuffle=on ./... -cluster
	cd cmd/latchkey && $(GO) test -race -shuffle=on ./...
	cd cmd/bench && $(GO) test -race -shuffle=on ./...
	cd internal/frameworks && $(GO) test -race -shuffle=on ./...
	cd internal/migration && $(GO) test -race -shuffle=on ./...

# The protocol in every order, with every message late, lost or doubled: prints what it has seen.
model:
	$(GO) test -count=1 -v -run '^TestProtocol$$' ./internal/simulation/model/... -all

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
N ?= 3000000
simulate:
	@mkdir -p bin/simulate
	$(GO) test -count=1 -timeout 0 -run '^TestSimulation$$' ./internal/simulation -operations $(N) $(if $(EXACTLY),-exactly) \
	  -saved $(CURDIR)/bin/simulate -seed $(or $(SEED),0) $(if $(PROFILE),-profile "$(PROFILE)") $(if $(PLAN),-plan $(abspath $(PLAN)))

# Latchkeys that are broken on purpose, and whether the tests notice: prints what has found each,
# and the score, in a quarter of an hour. ONLY=… tries those that match a pattern, SUITES=model,faults runs
# other suites than tests,simulation.
defects: setup
	$(GO) run ./internal/defects $(if $(SUITES),-suites $(SUITES)) $(if $(ONLY),-only '$(ONLY)') $(if $(SEED),-seed $(SEED))

# Every promise under attack, with real processes: about six minutes, or half of that with
# SHORT=1. SKIP=… leaves out tests with such names, SEED=… makes the visitors send the same
# requests. Logs of failures are kept in bin/faults.
faults: setup
	@mkdir -p bin/faults
	$(GO) test -count=1 -run '^TestAMillionForgedCookies$$' ./middleware -million
	$(GO) test ./internal/history
	cd internal/faults && \
	  $(GO) test -count=1 -timeout 40m -all -parallel 3 -artifacts -outputdir $(CURDIR)/bin/faults $(if $(SHORT),-short,-markdown results.md) $(if $(SKIP),-skip $(SKIP)) $(if $(SEED),-seed $(SEED))

# Random faults for ten minutes, or for another SOAK, such as 1h. With OPERATIONS=10000000
# until as many requests have succeeded, without the race detector: that takes half an hour.
SOAK ?= 10m
OPERATIONS ?= 0
soak: setup
	$(GO) test $(if $(filter 0,$(OPERATIONS)),-race) -tags soak -run '^TestSoak$$' -count=1 -timeout 0 -v \
	  ./internal/records -soak $(SOAK) -operations $(OPERATIONS)

# Finds or installs what the tests need besides Go.
setup:
	@.ci/setup

# Format, vet, static analysis, import rules, the scripts, known vulnerabilities; and whether what is broken on
# purpose, and other versions that are made for a test, still fit the sources.
check:
	@.ci/format
	$(GO) vet ./...
	$(STATICCHECK) ./...
	@for module in $(MODULES); do \
	  echo "$$module: vet, staticcheck"; \
	  (cd $$module && $(GO) vet ./... && $(STATICCHECK) ./...) || exit 1; \
	done
	@.ci/imports
	@.ci/luacheck
	$(GO) test -count=1 -run '^TestEveryDefectApplies$$' ./internal/defects
	cd internal/faults && $(GO) test -count=1 -run '^TestEveryVariantApplies$$' .
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
