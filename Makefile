# A newcomer needs only make test. Run make check before every commit.

GO         ?= go
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.2.0

# Further modules, so that their dependencies stay out of this one.
MODULES = cmd/bench cmd/latchkey middleware/otel store/goredisstore store/rueidisstore internal/browser internal/faults internal/frameworks internal/migration internal/prometheus internal/release

.PHONY: test test-all next-go release modules servers test-servers model simulate defects faults soak check fuzz e2e bench setup

# Every promise, in fake time and on one real Redis.
test: setup
	GOWORK=off $(GO) test -race -shuffle=on ./...

# The rest, as CI runs it after make test: 25 minutes. .ci/README.md describes each part, and how
# long it takes.
test-all: setup
	$(GO) test -count=1 ./middleware/differential -all
	$(MAKE) next-go
	$(MAKE) modules
	$(MAKE) simulate N=1000000 SEED=1
	$(MAKE) model
	$(MAKE) test-servers
	$(MAKE) faults SHORT=1
	$(MAKE) e2e

# The tests of the other modules: both clients, on one server and on clusters, the operator's
# command, metrics and traces, the benchmarks, frameworks, the move from other libraries.
modules: setup
	@.ci/nginx
	@.ci/shells
	@.ci/prometheus
	GOOS=windows GOARCH=386 $(GO) build ./session/... ./store/... ./locker/... ./middleware/... # other systems, and 32 bits
	cd cmd/latchkey && GOOS=windows GOARCH=386 $(GO) build -o /dev/null .
	cd store/goredisstore && $(GO) test -race -shuffle=on ./... -cluster
	cd store/rueidisstore && $(GO) test -race -shuffle=on ./... -cluster
	cd cmd/latchkey && $(GO) test -race -shuffle=on ./...
	cd cmd/bench && $(GO) test -race -shuffle=on ./...
	cd internal/frameworks && $(GO) test -race -shuffle=on ./...
	cd internal/migration && $(GO) test -race -shuffle=on ./...
	cd middleware/otel && $(GO) test -race -shuffle=on ./...
	cd internal/prometheus && $(GO) test -race -shuffle=on ./...
	cd internal/release && $(GO) test -timeout 30m -shuffle=on ./... # it downloads and builds much

# The tests of the packages that programs use, with the other release of Go that Go supports.
next-go: setup
	@.ci/next-go

# Checks that VERSION can be released, and prints the commands that tag and push it.
release: setup
	@cd internal/release && $(GO) run . -version "$(VERSION)"

# The protocol in every order, with every message late, lost or doubled. It prints how many states it has
# seen.
model:
	$(GO) test -count=1 -timeout 40m -v -run '^TestProtocol$$' ./internal/simulation/model/... -all

# The same promises on other common servers: Valkey 8 and 9, Redis 8. servers gets them from Debian into
# bin/servers, without installing them. test-servers runs the tests that need a real server on each of them,
# in two minutes a server, and prints a table.
servers:
	@.ci/servers

test-servers: setup
	@.ci/test-servers

# Latchkey in fake time, with all faults: N requests, from SEED on, with one PROFILE or all.
# SEED repeats a run, and so does PLAN, a file that a failure has written to bin/simulate.
# If it does not, use EXACTLY=1: it builds a Go runtime that leaves nothing to chance.
N ?= 3000000
simulate:
	@mkdir -p bin/simulate
	$(GO) test -count=1 -timeout 0 -run '^TestSimulation$$' ./internal/simulation -operations $(N) $(if $(EXACTLY),-exactly) \
	  -saved $(CURDIR)/bin/simulate -seed $(or $(SEED),0) $(if $(PROFILE),-profile "$(PROFILE)") $(if $(PLAN),-plan $(abspath $(PLAN)))

# Breaks Latchkey on purpose, in many ways, and checks that the tests notice. It prints which test has found
# each defect, and the score, in 20 minutes. ONLY=… tries the defects that match a pattern.
# SUITES=model,faults runs other suites than tests,simulation.
defects: setup
	$(GO) run ./internal/defects $(if $(SUITES),-suites $(SUITES)) $(if $(ONLY),-only '$(ONLY)') $(if $(SEED),-seed $(SEED))

# Every promise under attack, with real processes: about thirteen minutes, or half of that with
# SHORT=1. SKIP=… skips the tests whose names match. SEED=… makes the visitors send the same
# requests. Logs of failures are kept in bin/faults.
faults: setup
	@mkdir -p bin/faults
	$(GO) test -count=1 -run '^TestAMillionForgedCookies$$' ./middleware -million
	$(GO) test ./internal/history
	cd internal/faults && \
	  $(GO) test -count=1 -timeout 40m -all -parallel 3 -artifacts -outputdir $(CURDIR)/bin/faults $(if $(SHORT),-short,-markdown results.md) $(if $(SKIP),-skip $(SKIP)) $(if $(SEED),-seed $(SEED))

# Random faults for ten minutes, or for another SOAK, such as 1h. With OPERATIONS=10000000 it runs until that
# many requests have succeeded, without the race detector, which takes half an hour.
SOAK ?= 10m
OPERATIONS ?= 0
soak: setup
	$(GO) test $(if $(filter 0,$(OPERATIONS)),-race) -tags soak -run '^TestSoak$$' -count=1 -timeout 0 -v \
	  ./internal/records -soak $(SOAK) -operations $(OPERATIONS)

# Finds or installs the programs that the tests need besides Go.
setup:
	@.ci/setup

# Format, vet, static analysis, import rules, the scripts, known vulnerabilities; and whether the defects of
# internal/defects, and the other versions that are built for tests, still fit the sources.
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
	$(GO) test -count=1 -run '^TestEveryDefect' ./internal/defects
	cd internal/faults && $(GO) test -count=1 -run '^TestEveryVariantApplies$$' .
	@for module in . $(MODULES); do \
	  echo "$$module: known vulnerabilities"; \
	  (cd $$module && $(CURDIR)/.ci/vulnerabilities $(GOVULNCHECK) ./...) || exit 1; \
	done

# Each fuzz target for a minute.
fuzz:
	@.ci/fuzz 1m

# The demo's page, and sessions, in real browsers.
e2e: setup
	@.ci/chromium
	@.ci/firefox
	@.ci/npm
	cd internal/browser && $(GO) test -count=1 -timeout 20m -shuffle=on ./...

# Compares Latchkey with its peers; see cmd/bench. It takes about ten minutes. With
# AGAINST=DIR it compares Latchkey with another checkout of itself, which takes six.
bench: setup
	cd cmd/bench && $(GO) run . $(if $(AGAINST),-against $(abspath $(AGAINST)),-markdown results.md -chart hot.svg)
