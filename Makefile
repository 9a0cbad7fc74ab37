# The targets people and CI call. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
FUZZTIME ?= 10s
BENCH ?= .
LINT_VERSION := v2.15.0
LINT := bin/golangci-lint-$(LINT_VERSION)
SOAKTIME ?= 60m
NFPM_VERSION := v2.45.2
NFPM := bin/nfpm-$(NFPM_VERSION)
BILL_VERSION := v1.10.0
BILL := bin/cyclonedx-gomod-$(BILL_VERSION)

.PHONY: help build demo test race lint fuzz bench compare harness page cross arm interop soak figures packages release check

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1	\2/' | expand -t 12

build: ## build bin/hhfr, one static binary for this machine
	CGO_ENABLED=0 $(GO) build -o bin/hhfr ./cmd/hhfr

demo: build ## build, then the one-minute tour
	bin/hhfr demo

test: ## all tests
	$(GO) test ./...

# internal/layers only reads files, and slowly so.
race: ## all tests under the race detector, in random order
	scripts/race.sh $$($(GO) list ./... | grep -v /internal/layers)

lint: $(LINT) ## format, vet, module file, linters
	@unformatted=$$(gofmt -l .); if [[ -n $$unformatted ]]; then echo "not gofmt'ed:" $$unformatted; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags interop,soak ./...
	$(GO) mod tidy -diff
	$(LINT) run ./...
	@if command -v shellcheck > /dev/null; then shellcheck scripts/*.sh scripts/wireshark/hhfr-extcap .ci/run testdata/interop/stacks/build.sh; else echo "shellcheck: not installed, left out"; fi

$(LINT):
	@mkdir -p bin/install
	GOBIN=$(CURDIR)/bin/install $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv bin/install/golangci-lint $@ && rmdir bin/install

fuzz: ## every fuzz target for FUZZTIME (10s) each
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

bench: ## Go benchmarks (BENCH=regexp)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

compare: ## side by side with the alternatives; exit 1 when a goal is missed
	$(GO) -C compare run .

harness: ## the tests of compare, a module of its own
	$(GO) -C compare vet ./...
	$(GO) -C compare test ./...

page: ## hhfr decode for browsers: dist/hhfr.html, one file that needs no network
	scripts/page.sh

cross: ## build and vet for every system, into dist/
	scripts/cross.sh

arm: ## the main job, a pair of proxies and a measurement on ARM, under qemu
	scripts/arm.sh

interop: ## against other people's programs (tshark, curl, xmllint, python, gSOAP, Java, node, PHP, Perl, Mono, nginx, HAProxy, squid, Chromium)
	HHFR_CI=1 scripts/tagged.sh interop Interop 20m
	HHFR_CI=1 scripts/tagged.sh interop Interop 20m compare

soak: ## long runs: leaks, drift, stuck exchanges
	scripts/tagged.sh soak Soak $(SOAKTIME)

figures: ## what the tree is measured by, beside its limits
	scripts/figures.sh

packages: $(NFPM) ## .deb for Debian and Termux, with man pages and completions, into dist/packages
	NFPM=$(NFPM) scripts/packages.sh

$(NFPM):
	@mkdir -p bin/install
	GOBIN=$(CURDIR)/bin/install $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION) || \
		{ echo "nfpm $(NFPM_VERSION) cannot be had from the module proxy: NFPM=PROGRAM names another" >&2; exit 1; }
	@mv bin/install/nfpm $@ && rmdir bin/install

release: $(NFPM) $(BILL) ## archives of all systems, packages, bill of materials and checksums, into dist/release
	NFPM=$(CURDIR)/$(NFPM) BILL=$(CURDIR)/$(BILL) scripts/release.sh

$(BILL):
	@mkdir -p bin/install
	GOBIN=$(CURDIR)/bin/install $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(BILL_VERSION) || \
		{ echo "cyclonedx-gomod $(BILL_VERSION) cannot be had from the module proxy: BILL=PROGRAM names another" >&2; exit 1; }
	@mv bin/install/cyclonedx-gomod $@ && rmdir bin/install

check: lint race cross fuzz ## what must hold before a change goes in
