# Everything here needs Go, git and make, nothing else: tools are built from the versions that test/tools/go.mod pins, and
# the Kubernetes control plane comes from test/controlplane. Nothing is looked up before a target needs it.

GO         ?= go
EXAMPLE    ?= 01-minimal
CLUSTER    ?= devcluster
FUZZTIME   ?= 10s
BENCHTIME  ?= 200ms
COUNT      ?= 6
STORMS     ?= 500
COURSES    ?= all
CHAOS      ?= 5m
LIFETIME   ?= 15s
EXAMPLES   ?= all
SEED       ?=
TIMEOUT    ?= 60m
PACKAGES   ?= ./...
TESTS      ?= all
BASE       ?= origin/main
BREAKING   ?= no
NAME       ?=
SINCE      ?=
FOR        ?= 60s
RECORD     ?= no
SCENARIOS  ?= all
CONTENDERS ?= all
N          ?= 0
SIZE       ?= 300
ROUNDS     ?= 3
GOVULNDB   ?= https://vuln.go.dev

# Every module uses its own go.mod: a workspace around this folder must not mix them. The released modules below the root
# have a workspace of their own with the root, because a go.mod with a replace cannot be released. $(WORKSPACE) selects it
# for the shell variable module, the folder of a module or a folder in it.
export GOWORK = off
WORKSPACE = GOWORK=$$(dirname "$$($(GO) -C "$$module" env GOMOD)")/go.work; [ -f "$$GOWORK" ] || GOWORK=off

TOOL         = $(GO) tool '-modfile=$(CURDIR)/test/tools/go.mod'
ASSETS       = $(GO) run ./test/controlplane/assets
BROWSER      = $(GO) -C test/browser run ./cmd/browser
PROSE        = $(GO) -C test/prose run . -root '$(CURDIR)'
# Where the branch began. Without a branch to compare with, a recipe ends here.
FIND_BASE    = base=$$(git merge-base HEAD '$(BASE)' 2>/dev/null || git merge-base HEAD main 2>/dev/null) || \
	{ echo 'skipped, there is no $(BASE) and no main to compare with'; exit 0; }
# go test with a line for each package as soon as it ends, and all failures again at the end; the limit for each package is
# one that a slow machine does not reach. The arguments of go follow.
TEST         = '$(CURDIR)/bin/gotestsum' --format pkgname-and-test-fails --hide-summary skipped --raw-command -- $(GO)
LIMIT        = -timeout '$(TIMEOUT)'
# The versions that are tested beside those that go.mod requires, which are the lowest.
NEWEST       = '-modfile=$(CURDIR)/test/newest/go.mod'

# The clusters of "make run". The command devcluster serves a cluster in memory, or asks before it uses the one of the
# user's kubeconfig; exec hands signals over to it. It loads the files that expected.txt applies before the object.
CLUSTERS       = devcluster real current
RUN_real       = $(BUILD_EXAMPLE); $(GO) build $(QUICK_BUILD) -o bin/controlplane ./test/controlplane; \
	assets=$$($(ASSETS)); export KUBEBUILDER_ASSETS="$$assets"; exec bin/controlplane sh -euc '$(RUN_ON_SERVER)' bin/example "$$@" --load 'examples/$(EXAMPLE)/object.yaml'
RUN_devcluster = $(BUILD_EXAMPLE); exec bin/devcluster --demo --pretend-ready $(RUN_EXAMPLE)
RUN_current    = $(BUILD_EXAMPLE); exec bin/devcluster --demo --current-context $(RUN_EXAMPLE)
# Without the state of the repository and the debugger's data, an edit of the example links one program, and faster.
QUICK_BUILD    = -buildvcs=false -ldflags='-s -w'
BUILD_EXAMPLE  = set -e; echo 'building the cluster and examples/$(EXAMPLE): some minutes the first time'; \
	(module=facade/facadetest/devcluster; $(WORKSPACE); $(GO) -C "$$module" build $(QUICK_BUILD) -o '$(CURDIR)/bin/devcluster' ./cmd/devcluster); \
	(module='examples/$(EXAMPLE)'; $(WORKSPACE); $(GO) -C "$$module" build $(QUICK_BUILD) -o '$(CURDIR)/bin/example' .); \
	cd 'examples/$(EXAMPLE)'; set -- ; \
	for file in crd.yaml $$(sed -n '/^create$$/q; s/^apply //p' expected.txt 2>/dev/null); do \
		[ ! -f "$$file" ] || set -- "$$@" --load "$$PWD/$$file"; \
	done; cd '$(CURDIR)'
# On kube-apiserver, objects of a kind are refused until the kind is established. $$0 is the program.
RUN_ON_SERVER  = kubectl apply -k config/crd; \
	while [ $$\# -gt 0 ]; do \
		kubectl wait crd --all --for condition=Established; kubectl apply -f "$$2"; object=$$2; shift 2; \
	done; \
	printf "%s\n" "" "Now it is your turn. In a second terminal:" "" "    export KUBECONFIG=$$KUBECONFIG PATH=$$KUBEBUILDER_ASSETS:\$$PATH" \
		"    kubectl edit -f $$object" "" "Ctrl-C here stops everything." ""; \
	exec "$$0" run --all-namespaces --console --debug-bind-address localhost:0
RUN_EXAMPLE    = --load config/crd "$$@" --load 'examples/$(EXAMPLE)/object.yaml' -- bin/example run --all-namespaces

# The folders of all modules with code of ours; the root is ".". The one with the newest versions has no code.
MODULES = $(patsubst ./%/go.mod,%,$(patsubst ./go.mod,.,$(shell find . -name go.mod -not -path '*/testdata/*' -not -path '*/.*/*' -not -path './test/newest/*' | sort)))
# The folders whose tests need a real API server: they run with KUBEBUILDER_ASSETS set, and not among the unit tests.
SUITES = $(wildcard test/e2e test/quickstart facade/facadetest/memapi examples/09-testing test/controlplane test/interop test/chaos test/yardstick)
# Those of other modules than the root's; each stands right below its module.
NESTED_SUITES = $(wildcard facade/rules/conformance facade/facadetest/devcluster/clients)
# The folders that are no unit tests for another reason.
APART = $(wildcard test/weight test/browser test/benchmarks test/release test/reviews test/monitoring/alerts)
UNIT_NOT = /kopf-runtime/($(subst $(space),|,$(filter-out $(IN_MEMORY),$(SUITES)) $(NESTED_SUITES) $(APART)))(/|$$)
# The race detector needs a C compiler on most platforms; without one the tests still run.
RACE = $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)
# Many unit tests wait and compute nothing, so twice as many packages as there are processors are tested at once, and the
# other modules beside that of the root.
AT_ONCE = -p $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

.DEFAULT_GOAL := help
.SUFFIXES:

comma := ,
empty :=
space := $(empty) $(empty)
say = @printf '\n== %s\n' "$(1)"

##@ Try it

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z-]*:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@printf '\nSet variables as in "make run EXAMPLE=database". The names and defaults are at the top of the Makefile.\n'

.PHONY: run
run: ## Run an example until Ctrl-C, in memory; with CLUSTER=real on kube-apiserver, with CLUSTER=current on yours, after a question.
	@[ -f 'examples/$(EXAMPLE)/object.yaml' ] || { \
		echo 'There is no example "$(EXAMPLE)". These can be run with "make run EXAMPLE=...":'; \
		for one in examples/*/object.yaml; do echo "  $$(basename "$$(dirname "$$one")")"; done; exit 2; }
	@$(if $(filter $(CLUSTERS),$(CLUSTER)),$(RUN_$(CLUSTER)),echo 'There is no CLUSTER=$(CLUSTER). There are:'; \
		echo '  devcluster  an API server in memory, for this run (the default)'; \
		echo '  real        kube-apiserver and etcd, for this run'; \
		echo '  current     the cluster of your kubeconfig, after a question'; exit 2)

.PHONY: demo
demo: ## Play an example against kube-apiserver: print each step and the log; fail if a handler did not fire.
	@[ -f 'examples/$(EXAMPLE)/expected.txt' ] || { echo 'There is no example "$(EXAMPLE)" with an expected.txt.'; exit 2; }
	@assets=$$($(ASSETS)); export KUBEBUILDER_ASSETS="$$assets"; \
	$(GO) test -count 1 -v $(LIMIT) ./test/e2e -ginkgo.v -ginkgo.silence-skips -ginkgo.no-color -ginkgo.focus 'examples $(notdir $(EXAMPLE)) does what it shows'

##@ Before a commit

.PHONY: check
check: prose-changed ## Check the format, the layers, the language, and the short tests of changed packages: under a minute.
	$(call say,format and vet)
	@set -e; files=$$(git ls-files -co --exclude-standard -- '*.go' | xargs gofmt -l); \
	[ -z "$$files" ] || { printf 'run make fmt for these files:\n%s\n' "$$files"; exit 1; }; $(GO) vet ./...
	$(call say,short tests of the packages that changed since $(BASE))
	@set -e; $(FIND_BASE); \
	changed=$$({ git diff --name-only --diff-filter=d "$$base" -- '*.go'; git ls-files -o --exclude-standard -- '*.go'; } | \
		grep -v /testdata/ | xargs -r -n 1 dirname | sort -u); \
	for module in $(MODULES); do \
		$(WORKSPACE); \
		packages=$$($(GO) -C "$$module" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package folder; do \
			case "$$folder" in '$(CURDIR)') folder=.;; *) folder=$${folder#'$(CURDIR)/'};; esac; \
			! printf '%s\n' "$$changed" | grep -qx "$$folder" || echo "$$package"; \
		done | grep -vE '$(UNIT_NOT)' || true); \
		[ -z "$$packages" ] || $(GO) -C "$$module" test -short $(LIMIT) $$packages; \
	done
	$(call say,layers of packages$(comma) sizes and docs of files)
	@$(GO) test -v -count=1 ./test/layers/...

.PHONY: test
# Of the suites, that of the API server in memory leaves out what needs a real one. Most of the time goes into linking a
# program per folder, so the examples wait for test-all.
test: SHORT = -short
test: IN_MEMORY = facade/facadetest/memapi
test: APART += examples test/certificates test/explorer
test: test-unit ## Run the unit tests of every module and the suites in memory, but not the tests that take long.
	@printf '\n%s\n%s\n%s\n' 'Passed. Not run: the examples and lessons, certificates on a server, the exploration of all courses, the tests that take' \
		'long (go test -short skips them), those with the newest dependencies, in a browser, against a real API server and beside' \
		'Kopf, the image and the workflows, and the limits of size and allocations. "make test-all" runs everything.'

.PHONY: test-all
test-all: test-unit test-newest test-limits test-release test-browser test-envtest ## Run all tests, also in a browser, against a real API server, and beside genuine Kopf.

.PHONY: test-unit
test-unit: gotestsum
	$(call say,unit tests$(if $(RACE),, without the race detector (no C compiler)); the first time waits for the compiler)
	@$(MAKE) --no-print-directory -j 2 SHORT='$(SHORT)' IN_MEMORY='$(IN_MEMORY)' APART='$(APART)' unit-root unit-others

# A job of make ends with Ctrl-C; one in the background of a shell does not.
.PHONY: unit-root unit-others
unit-root: TESTED = .
unit-others: TESTED = $(filter-out .,$(MODULES))
unit-root unit-others:
	@set -e; for module in $(TESTED); do \
		$(WORKSPACE); \
		all=$$($(GO) -C "$$module" list ./...); \
		packages=$$(printf '%s\n' "$$all" | grep -vE '$(UNIT_NOT)' || true); \
		[ -n "$$packages" ] || continue; \
		printf '== module %s\n' "$$module"; \
		$(TEST) -C "$$module" test -json $(LIMIT) $(RACE) $(SHORT) $(AT_ONCE) $$packages; \
	done

.PHONY: test-newest
# The folder test has what is to be shown once: it is the same code of ours that it looks at.
test-newest: gotestsum
	$(call say,short unit tests with the newest versions; the first time waits for the compiler)
	@set -e; packages=$$($(GO) list $(NEWEST) ./... | grep -vE '$(UNIT_NOT)|/kopf-runtime/test/'); \
	$(GO) vet $(NEWEST) ./test/...; \
	$(TEST) test -json -short $(NEWEST) $(LIMIT) $$packages

.PHONY: test-limits
# What they build and read is outside of the tests' modules, so the test cache does not know of it. The race detector
# allocates, so it is off.
test-limits:
	$(call say,limits of size and allocations$(comma) and the alerts of config/monitoring)
	@$(FIGURE_weight)
	@$(GO) test -count 1 $(LIMIT) ./test/benchmarks/... ./test/reviews
	@$(GO) -C test/monitoring/alerts test -count 1 $(LIMIT) ./...

.PHONY: test-release
# The tests build programs of other modules, which the test cache does not know of.
test-release:
	$(call say,the image$(comma) builds for other platforms$(comma) licences$(comma) workflows; the first time compiles for each platform)
	@$(GO) -C test/release test -count 1 $(LIMIT) ./...

.PHONY: release-notes
# What the workflow of a release publishes: the changelog's entry of VERSION, and the modules of the first example with
# their licences.
release-notes: VERSION ?= $(shell git describe --tags)
release-notes:
	$(call say,bin/release/notes.md and bin/release/modules.json of $(VERSION))
	@set -e; mkdir -p bin/release; \
	awk -v wanted='## $(VERSION:v%=%)' '/^## / {found = index($$0 " ", wanted " ") == 1; next} found' CHANGELOG.md > bin/release/notes.md; \
	grep -q '[^[:space:]]' bin/release/notes.md || { echo 'CHANGELOG.md has no entry "## $(VERSION:v%=%)": add it first.'; exit 1; }; \
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/release/operator ./examples/getting-started; \
	$(GO) -C test/release tool cyclonedx-gomod bin -json -licenses -version '$(VERSION)' \
		-output '$(CURDIR)/bin/release/modules.json' '$(CURDIR)/bin/release/operator'

.PHONY: test-envtest
test-envtest: gotestsum ## Run SUITES against a real API server; test/interop, with genuine Kopf, needs a python3 with venv.
	$(call say,suites against a real API server; the first time waits for its binaries)
	@set -e; suites='$(SUITES:%=./%/...)'; \
	if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then \
		echo 'skipped, there is no python3 with venv: ./test/interop'; \
		suites=$$(printf '%s' "$$suites" | sed 's|\./test/interop/\.\.\.||'); \
	fi; \
	assets=$$($(ASSETS) $(if $(KUBEBUILDER_ASSETS),,--controller-manager)); \
	export KUBEBUILDER_ASSETS="$$assets"; $(TEST) test -json $(LIMIT) $(RACE) $$suites; \
	for suite in $(NESTED_SUITES); do \
		module=$$suite; $(WORKSPACE); \
		$(TEST) -C "$$(dirname "$$suite")" test -json $(LIMIT) $(RACE) "./$$(basename "$$suite")/..."; \
	done

.PHONY: test-browser
# The browser is no input that the test cache knows of.
test-browser: gotestsum
	$(call say,tests in headless Chromium)
	@set -e; if ! $(BROWSER) find; then \
		[ "$$CI" != true ]; \
		echo 'skipped, there is no Chromium: what opens a page in ./test/browser'; \
	fi; \
	$(TEST) -C test/browser test -json -count 1 $(LIMIT) $(RACE) ./...

.PHONY: browser
browser:
	$(call say,what tests in a browser need)
	@$(BROWSER)

.PHONY: gotestsum
gotestsum:
	@$(GO) build -C test/tools -o '$(CURDIR)/bin/gotestsum' gotest.tools/gotestsum

.PHONY: lint
lint: prose-changed golangci-lint apidiff vulncheck ## Run the linters; check changed lines, changes of the public API, and vulnerabilities.
	$(call say,linters; the first time waits for building them: some minutes)
	@set -e; for module in $(MODULES); do \
		$(WORKSPACE); \
		all=$$($(GO) -C "$$module" list ./...); \
		[ -n "$$all" ] || continue; \
		printf '== module %s\n' "$$module"; \
		(cd "$$module" && '$(CURDIR)/bin/golangci-lint' run --config '$(CURDIR)/.golangci.yml' ./...); \
	done

.PHONY: prose prose-changed
prose:
	@$(PROSE)

prose-changed:
	$(call say,language of the lines that changed since $(BASE); the first time waits for building Vale: some minutes)
	@$(FIND_BASE); \
	$(PROSE) -base "$$base"

.PHONY: apidiff
# Sources of the base are loaded from a folder with a fixed name, so that the build cache applies. Other targets skip it.
# After the first tag, incompatible changes fail without BREAKING=yes.
apidiff:
	$(call say,the public API since $(BASE))
	@set -e; $(FIND_BASE); \
	fail=$$([ '$(BREAKING)' != yes ] && git describe --tags --match 'v[0-9]*' --abbrev=0 "$$base" >/dev/null 2>&1 && echo -fail || true); \
	rm -rf bin/.base; mkdir -p bin/.base; trap 'rm -rf bin/.base' EXIT; \
	git archive --format tar -o bin/.base/sources.tar "$$base"; tar -xf bin/.base/sources.tar -C bin/.base; \
	$(GO) build -C test/tools -o '$(CURDIR)/bin/apidiff' ./apidiff; \
	bin/apidiff $$fail bin/.base .

.PHONY: vulncheck
# The code 3 is for vulnerabilities. The database may be out of reach.
vulncheck:
	$(call say,known vulnerabilities)
	@set -e; $(GO) build -C test/tools -o '$(CURDIR)/bin/govulncheck' golang.org/x/vuln/cmd/govulncheck; \
	code=0; bin/govulncheck -db '$(GOVULNDB)' ./... || code=$$?; \
	[ "$$code" = 0 ] || { [ "$$code" = 1 ] && echo 'skipped: it could not be checked, see above'; }

.PHONY: docs
# A checkout of a tag has links to the sources of that tag.
# With PUBLISH, the site is copied there as the manual of its version, beside those of other versions.
docs: ## Build the site of the documentation into bin/site, and with PUBLISH=DIR into DIR; needs python3 with venv.
	$(call say,the site of the documentation$(comma) for which python3 (3.11 or later) with venv is needed)
	@$(GO) run ./test/documents/site -into bin/site -ref "$$(git describe --tags --exact-match 2>/dev/null || true)" \
		$(if $(PUBLISH),-publish '$(PUBLISH)')

.PHONY: fmt
fmt: golangci-lint ## Format all Go files as the linters want them.
	@set -e; for module in $(MODULES); do (cd "$$module" && '$(CURDIR)/bin/golangci-lint' fmt --config '$(CURDIR)/.golangci.yml'); done

.PHONY: golangci-lint
# A program, because go tool with the go.mod of the tools cannot be run in a workspace.
golangci-lint:
	@$(GO) build -C test/tools -o '$(CURDIR)/bin/golangci-lint' github.com/golangci/golangci-lint/v2/cmd/golangci-lint

##@ Now and then

# What "make explore" runs. Chaos ends with genuine Kopf among the operators. LIFETIME is that of peering records.
EXPLORE_courses = EXPLORER_COURSES='$(COURSES)' $(TEST) test -json -count=1 -timeout 6h ./test/explorer
EXPLORE_storms  = STORMS='$(STORMS)' $(GO) test $(RACE) -count=1 -timeout 60m -run 'Storm|TestForgery' ./reconcilers/changes \
	./peering/election ./peering/sharding ./test/forgery
EXPLORE_chaos   = assets=$$($(ASSETS)); \
	KUBEBUILDER_ASSETS="$$assets" CHAOS_FOR='$(CHAOS)' CHAOS_LIFETIME='$(LIFETIME)' CHAOS_SEED='$(SEED)' CHAOS_KOPF=yes \
	$(GO) test -timeout 6h $(RACE) -count 1 -v -skip '^TestSharedObjects$$' ./test/chaos
EXPLORE_sharding = assets=$$($(ASSETS)); \
	KUBEBUILDER_ASSETS="$$assets" CHAOS_FOR='$(CHAOS)' CHAOS_SEED='$(SEED)' CHAOS_OBJECTS=3000 CHAOS_EDITS=30 \
	$(GO) test -timeout 6h -count 1 -parallel 1 -v -run '^TestSharedObjects$$' ./test/chaos
# The specs of EXAMPLES in test/e2e. The end of the output has the figures of each example.
EXPLORE_EXAMPLES = assets=$$($(ASSETS)); \
	KUBEBUILDER_ASSETS="$$assets" EXAMPLES='$(EXAMPLES)' SEED='$(SEED)' \
	$(GO) test -timeout 6h -count 1 -v ./test/e2e -ginkgo.timeout 6h -ginkgo.focus
EXPLORE_permissions = $(EXPLORE_EXAMPLES) 'Every example under its generated permissions'
EXPLORE_election    = $(EXPLORE_EXAMPLES) 'Two processes of every example'
EXPLORE_autoscaling = assets=$$($(ASSETS)); \
	KUBEBUILDER_ASSETS="$$assets" AUTOSCALING=yes \
	$(GO) test -timeout 1h -count 1 -v ./test/e2e -ginkgo.focus 'number follows the backlog'
EXPLORE_fuzz    = grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^(.*)/[^/]*:[0-9]+:func (.*)$$|\1 \2|' | sort -u | \
	while read -r folder name; do \
		printf '== %s in %s for %s\n' "$$name" "$$folder" '$(FUZZTIME)'; \
		module=$$folder; $(WORKSPACE); \
		$(GO) -C "$$folder" test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' . || exit 1; \
	done

define EXPLORE_NAMES
Choose one with "make explore NAME=...":
  courses      kill an operator at every point of every scenario, beside every disturbance: all courses, or COURSES of each
  storms       STORMS random histories of one object, and of the Leases of replicas: edits, kills, refusals, lost answers;
               forged memory
  chaos        kill, freeze and cut off five operators of one peering for CHAOS, then with genuine Kopf; SEED repeats it
  sharding     kill, freeze and cut off replicas that share 3,000 objects for CHAOS, and restart the API server; SEED
               repeats it
  permissions  every example, or EXAMPLES=name,name, under its generated RBAC, and without one rule of it
  election     two processes of every example, or of EXAMPLES, elected, killed, frozen and replaced; SEED repeats it
  autoscaling  replicas that share objects, one to four and back, as a HorizontalPodAutoscaler would start them
  fuzz         every fuzz test for FUZZTIME
endef

.PHONY: explore
explore: gotestsum ## Look for failures in one way, the NAME. Without a name, it describes them.
	@set -e; $(or $(EXPLORE_$(NAME)),$(info $(EXPLORE_NAMES))exit 2)

.PHONY: mutants
# With SINCE, only what fits into FOR is tried; the output lists the rest.
mutants: BASE := $(or $(SINCE),$(BASE))
mutants: ## Change the code of PACKAGES, only lines changed SINCE a branch, or a random SAMPLE, and list what no test notices.
	$(call say,small changes of the code$(comma) tried with TESTS=$(TESTS): all that import a package$(comma) own$(comma) or packages)
	@$(if $(SINCE),$(FIND_BASE); )nice -n 10 $(GO) run ./test/mutants -tests '$(TESTS)' $(if $(SINCE),-since "$$base" -for '$(FOR)') \
		$(if $(SAMPLE),-sample '$(SAMPLE)' -seed '$(or $(SEED),1)') \
		$(if $(filter ./...,$(PACKAGES)),./internal/... ./storage/... ./reconcilers/... \
		$(if $(SAMPLE),./facade ./facade/internal/... ./facade/hierarchies ./peering/... ./webhooks/...),$(PACKAGES))

# What "make figures" measures.
FIGURE_children    = ENSURE_PARENTS=1000 $(GO) test -count=1 -v -run '^Test(Ensure|Conditions)Figures$$' -timeout 10m ./facade
FIGURE_console     = $(GO) -C test/browser test -v -count 1 $(LIMIT) -run TestFigures ./console
FIGURE_coverage    = mkdir -p bin; $(GO) test -coverprofile=bin/cover.out $$($(GO) list ./... | grep -vE '/kopf-runtime/(test|examples)/'); \
	$(GO) tool cover -html=bin/cover.out -o bin/cover.html; $(GO) tool cover -func=bin/cover.out | tail -n 1
FIGURE_deafness    = DEAFNESS=long $(GO) test -count=1 -v -parallel 4 -timeout 10m ./test/deafness
FIGURE_event-flood = FLOOD_OBJECTS=500 $(GO) test -count=1 -v -run '^TestEventFlood$$' -timeout 20m ./facade
FIGURE_idle-timers = $(GO) test -count=1 -v -run '^TestIdleTimersCostLittle$$' -timeout 10m ./reconcilers/internal/background
FIGURE_sharding    = $(GO) build -o bin/sharding ./test/yardstick/sharding; \
	assets=$$($(ASSETS)); KUBEBUILDER_ASSETS="$$assets" exec bin/sharding
FIGURE_shards      = GOGC=800 SHARDS_DAY=1 $(GO) test -count=1 -v -run '^TestSimulatedReplicas$$' -timeout 15m ./peering/sharding
FIGURE_takeover    = TAKEOVER_OBJECTS=20000 $(GO) test -count=1 -v -run '^TestTakeOver$$' -timeout 10m ./reconcilers
FIGURE_virtual-day = VIRTUAL_DAYS=15 $(GO) test -count=1 -v -run '^TestVirtualDayFigures$$' -timeout 10m ./facade/facadetest
FIGURE_weight      = $(GO) test -v -count 1 $(LIMIT) ./test/weight
FIGURE_yardstick   = $(GO) build -o bin/yardstick ./test/yardstick; \
	assets=$$($(ASSETS)); export KUBEBUILDER_ASSETS="$$assets"; \
	exec bin/yardstick -scenarios '$(SCENARIOS)' -contenders '$(CONTENDERS)' -n '$(N)' -size '$(SIZE)' -rounds '$(ROUNDS)'

define FIGURE_NAMES
Choose one with "make figures NAME=...":
  children     1,000 objects with three children each, beside the same on controller-runtime by hand
  console      the console with 10,000 objects and 100 handlers: its size, its first picture, memory
  coverage     coverage by unit tests: bin/cover.out, bin/cover.html, and the total
  deafness     how long an operator takes to notice that its connection is dead, beside plain controller-runtime
  event-flood  the events of 500 objects whose handler fails at once, with the limits of posting and without
  idle-timers  100,000 timers that wait for their next tick: heap and goroutines
  sharding     20,000 objects of one process and of four replicas: bytes received, memory, throughput, Leases
  shards       a day of 100 replicas that share 1,000 ranges, die, end and start: movements, gaps, requests
  takeover     how long a paused operator takes to take over 20,000 handled objects, beside a fresh start
  virtual-day  the test kit over 15 virtual days of an operator with ten handlers
  weight       what a project takes on with this module
  yardstick    whole operators, ours, by hand and genuine Kopf: SCENARIOS, CONTENDERS, N, SIZE, ROUNDS
endef

.PHONY: figures
figures: ## Measure one thing, the NAME, and print its figures. Without a name, it lists the names.
	@set -e; $(or $(FIGURE_$(NAME)),$(info $(FIGURE_NAMES))exit 2)


# The benchmarks of PACKAGES, as go test prints them, in bin/bench.txt.
MEASURE = set -e; mkdir -p bin; : >bin/bench.txt; all=$$($(GO) list -f '{{.ImportPath}} {{.Dir}}' $(PACKAGES)); \
	printf '%s\n' "$$all" | while read -r package folder; do \
		grep -qsE '^func Benchmark' "$$folder"/*_test.go || continue; \
		printf '== %s\n' "$$package"; \
		$(GO) test -run '^$$' -bench . -benchmem -benchtime '$(BENCHTIME)' -count '$(COUNT)' "$$package" >bin/bench.part || \
			{ cat bin/bench.part; exit 1; }; \
		cat bin/bench.part >>bin/bench.txt; \
	done; rm -f bin/bench.part
RECORDED = test/benchmarks/figures.txt

.PHONY: bench
# What tells machines apart is left out, so that figures of two machines stand in one table.
bench: ## Run the benchmarks of PACKAGES, COUNT times for BENCHTIME; compare them with the recorded ones, or record them: RECORD=yes.
	$(call say,benchmarks$(comma) $(COUNT) times each)
	@$(MEASURE)
	@set -e; [ -s bin/bench.txt ] || { echo 'there are no benchmarks in $(PACKAGES)'; exit; }; $(if $(filter yes,$(RECORD)),$(RECORD_BENCH),$(COMPARE_BENCH))

COMPARE_BENCH = printf '\n== compared with $(RECORDED)\n'; sed -n 's/^\# //p' $(RECORDED); \
	measured=$$(awk '/^pkg: / {printf "%s%s", or, $$2; or = " OR "}' bin/bench.txt); \
	$(TOOL) benchstat -table pkg -ignore goos,goarch,cpu,/gomaxprocs -filter "pkg:($$measured)" recorded=$(RECORDED) now=bin/bench.txt
RECORD_BENCH = { \
		printf '\# Recorded by make bench RECORD=yes: %s, %s\n' "$$($(GO) version)" "$$(sed -n 's/^cpu: //p' bin/bench.txt | sort -u)"; \
		echo '\# Times are those of that machine. Allocations and bytes can be compared from one machine to the next.'; \
		grep -E '^(goos|goarch|cpu|pkg|Benchmark)' bin/bench.txt; \
	} >bin/figures.txt; mv bin/figures.txt $(RECORDED)

.PHONY: assets
assets: ## Get etcd, kube-apiserver and kubectl; print their folder.
	@$(ASSETS)

.PHONY: clean
clean: ## Remove what these targets have put into the tree; caches stay.
	rm -rf bin
