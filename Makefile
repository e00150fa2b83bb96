# Everything here needs Go, git and make, nothing else: tools are built from the versions that test/tools/go.mod pins, and
# the Kubernetes control plane comes from test/controlplane. Nothing is looked up before a target needs it.

GO         ?= go
EXAMPLE    ?= 01-minimal
FUZZTIME   ?= 10s
BENCHTIME  ?= 1s
STORMS     ?= 500
PACKAGES   ?= ./...
GOVULNDB   ?= https://vuln.go.dev

# Every module is told its own go.mod: a workspace around this folder must not mix them.
export GOWORK = off

TOOL         = $(GO) tool '-modfile=$(CURDIR)/test/tools/go.mod'
CONTROLPLANE = $(GO) -C test/controlplane run ./cmd/controlplane
# Built and then executed in the shell's place, so that signals reach it and it can stop what it has started.
DEMO         = $(GO) build -C test/controlplane -o '$(CURDIR)/bin/demo' ./cmd/demo && exec bin/demo -root '$(CURDIR)' -example 'examples/$(EXAMPLE)'

# The folders of all modules with code of ours; the root is ".".
MODULES = $(patsubst ./%/go.mod,%,$(patsubst ./go.mod,.,$(shell find . -name go.mod -not -path '*/testdata/*' -not -path '*/.*/*' | sort)))
# The folders whose tests need a real API server: they run with KUBEBUILDER_ASSETS set, and not among the unit tests.
SUITES = $(wildcard test/e2e test/memapi test/interop)
# The race detector needs a C compiler on most platforms; without one the tests still run.
RACE = $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && echo -race)

.DEFAULT_GOAL := help
.SUFFIXES:

empty :=
space := $(empty) $(empty)
say = @printf '\n== %s\n' "$(1)"

##@ Try it

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z-]*:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables: EXAMPLE=%s FUZZTIME=%s BENCHTIME=%s STORMS=%s PACKAGES=%s\n' '$(EXAMPLE)' '$(FUZZTIME)' '$(BENCHTIME)' '$(STORMS)' '$(PACKAGES)'

.PHONY: run
run: ## Run an example against a control plane of its own, until Ctrl-C.
	@$(DEMO)

.PHONY: demo
demo: ## The same, then update and delete its object; fails if a handler did not fire.
	@$(DEMO) -once

##@ Before a commit

.PHONY: test
test: test-unit test-envtest ## Run all tests: unit tests of every module, then the suites against a real API server.

.PHONY: test-unit
test-unit: ## Run the tests that need no API server, with the race detector.
	$(call say,unit tests$(if $(RACE),, without the race detector (no C compiler)); the first time waits for the compiler)
	@set -e; for module in $(MODULES); do \
		all=$$($(GO) -C "$$module" list ./...); \
		packages=$$(printf '%s\n' "$$all" | grep -vE '/kopf-runtime/($(subst $(space),|,$(or $(SUITES),none)))(/|$$)' || true); \
		[ -n "$$packages" ] || continue; \
		printf '== module %s\n' "$$module"; \
		$(GO) -C "$$module" test $(RACE) $$packages; \
	done

.PHONY: test-envtest
test-envtest: ## Run the suites against a real API server.
	$(call say,suites against a real API server; the first time waits for its binaries)
	@set -e; [ -n '$(SUITES)' ] || { echo 'there are no suites yet'; exit 0; }; \
	assets=$$($(CONTROLPLANE) assets); \
	KUBEBUILDER_ASSETS="$$assets" $(GO) test $(RACE) $(SUITES:%=./%/...)

.PHONY: interop
interop: ## Hand objects from genuine Kopf to our operator and back; needs python3 with venv, and the package index once.
	$(call say,interop with genuine Kopf; the first time waits for binaries and for Python packages)
	@set -e; assets=$$($(CONTROLPLANE) assets); \
	KUBEBUILDER_ASSETS="$$assets" $(GO) test $(RACE) -count 1 ./test/interop -ginkgo.v

.PHONY: lint
lint: ## Run the linters over every module.
	$(call say,linters; the first time waits for building them: some minutes)
	@set -e; for module in $(MODULES); do \
		all=$$($(GO) -C "$$module" list ./...); \
		[ -n "$$all" ] || continue; \
		printf '== module %s\n' "$$module"; \
		(cd "$$module" && $(TOOL) golangci-lint run --config '$(CURDIR)/.golangci.yml' ./...); \
	done

.PHONY: layers
layers: ## Check the layers of packages, and sizes and docs of files.
	@$(GO) test -v -count=1 ./test/layers/...

.PHONY: fmt
fmt: ## Format all Go files as the linters want them.
	@set -e; for module in $(MODULES); do (cd "$$module" && $(TOOL) golangci-lint fmt --config '$(CURDIR)/.golangci.yml'); done

##@ Now and then

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME.
	@grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^(.*)/[^/]*:[0-9]+:func (.*)$$|\1 \2|' | sort -u | \
	while read -r folder name; do \
		printf '== %s in %s for %s\n' "$$name" "$$folder" '$(FUZZTIME)'; \
		$(GO) -C "$$folder" test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' . || exit 1; \
	done

.PHONY: soak
soak: ## Play STORMS random histories of one object, on virtual time: edits, kills, refusals, lost answers.
	@STORMS='$(STORMS)' $(GO) test $(RACE) -count=1 -timeout 60m -run TestStorms ./reconcilers/changes

.PHONY: bench
bench: ## Run the benchmarks of PACKAGES, with allocations.
	@$(GO) test -run '^$$' -bench . -benchmem -benchtime '$(BENCHTIME)' $(PACKAGES)

.PHONY: cover
cover: ## Measure the coverage by unit tests: bin/cover.out, bin/cover.html, and the total.
	@mkdir -p bin
	@$(GO) test -coverprofile=bin/cover.out $$($(GO) list ./... | grep -v '/kopf-runtime/test/' | grep -v '/kopf-runtime/examples/')
	@$(GO) tool cover -html=bin/cover.out -o bin/cover.html
	@$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities, if their database can be reached.
	$(call say,known vulnerabilities)
	@set -e; answer=$$($(GO) -C test/tools run ./reachable -timeout 5s '$(GOVULNDB)/index/db.json'); \
	case "$$answer" in \
		yes) $(TOOL) govulncheck -db '$(GOVULNDB)' ./... ;; \
		*) printf 'skipped, the database is out of reach: %s\n' "$${answer#no: }" ;; \
	esac

.PHONY: assets
assets: ## Get etcd, kube-apiserver and kubectl; print their folder.
	@$(CONTROLPLANE) assets

.PHONY: clean
clean: ## Remove what these targets have put into the tree; caches stay.
	rm -rf bin
