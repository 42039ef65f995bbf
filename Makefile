# Plain make and sh; everything but `test`, `bench` and `stack` needs only Go.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/seckill

LINT_VERSION := v2.15.0
LINT         := $(CACHE)/golangci-lint-$(LINT_VERSION)/golangci-lint

PACKAGES := ./test/harness/packages.sh
MOCKS    := application/port/portmock

# Tests that run the service as users do take this binary.
export SECKILLTEST_BINARY := $(CURDIR)/bin/seckill

.PHONY: help run demo build dist test test-unit fuzz fuzz-api test-stack stack-suites e2e install \
	verify verify-mocks verify-format verify-deploy generate fmt lint bench bench-quick bench-micro fault fault-layers stack clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

run: build ## build and serve a demo product at once; needs nothing but Go
	bin/seckill serve --profile embedded --demo

demo: build ## a crowd on the sale that `make run` serves, or on one of its own; then the verdict
	bin/seckill rehearse --buyers 5000 --rate 2000

build: ## bin/seckill, a static binary that knows its version
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/seckill ./bootstrap/seckill

# Where the service runs; Windows has no lock for the data folder that it could use.
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

dist: build ## archives for Linux and macOS in bin/dist, with completions and checksums
	@set -e; rm -rf bin/dist; mkdir -p bin/dist/completions; \
	for shell in bash zsh fish; do bin/seckill completion $$shell > bin/dist/completions/seckill.$$shell; done; \
	for target in $(TARGETS); do \
		name=seckill-$(VERSION)-$${target%/*}-$${target#*/}; mkdir bin/dist/$$name; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/dist/$$name/seckill ./bootstrap/seckill; \
		cp -R README.md CHANGELOG.md bin/dist/completions bin/dist/$$name; \
		mkdir bin/dist/$$name/bootstrap; cp -R bootstrap/reference bootstrap/deploy bin/dist/$$name/bootstrap; \
		rm -r bin/dist/$$name/bootstrap/deploy/check; rm bin/dist/$$name/bootstrap/reference/*.go; \
		tar -czf bin/dist/$$name.tar.gz -C bin/dist $$name; rm -r bin/dist/$$name; echo bin/dist/$$name.tar.gz; \
	done; \
	rm -r bin/dist/completions; cd bin/dist; \
	if command -v sha256sum >/dev/null; then sha256sum *.tar.gz; else shasum -a 256 *.tar.gz; fi > SHA256SUMS

# The packages of test-stack run there with all their tests, so they are left out here.
test: install build ## every test, on real servers too: installs (Debian, root) and starts them
	$(call go-test,rest)
	$(MAKE) fuzz
	$(MAKE) test-stack

test-unit: build ## the tests that need only Go
	$(call go-test,unit)

test-stack: install build bin/stack ## the tests that need real servers, started once for all
	bin/stack exec -- $(MAKE) stack-suites

# One package at a time: some stop or freeze servers of their own, and all share two cores.
stack-suites:
	$(call go-test,stack,-tags stack -p 1 -count=1 -timeout 30m)

# $(call go-test,which packages,flags): with the race detector where no RocketMQ
# client is linked, then the others without.
define go-test
	@set -e; packages=$$($(PACKAGES) $(1) race); \
	if [ -n "$$packages" ]; then echo go test -race $(2) $$packages; go test -race $(2) $$packages; fi
	@set -e; packages=$$($(PACKAGES) $(1) plain); \
	if [ -n "$$packages" ]; then echo go test $(2) $$packages; go test $(2) $$packages; fi
endef

e2e: install build bin/stack ## whole stories with the built service, and the console in a browser (pictures: test/console/out)
	bin/stack exec -- go test -tags stack -p 1 -count=1 -timeout 30m ./test/e2e ./test/console

# A fuzzer's find is kept under testdata/fuzz beside it, and is a test of its package from then on.
# A number of inputs, not a time: at its end Go 1.26 may take the deadline itself for a failure (golang/go#75804).
FUZZTIME ?= 50000x

fuzz: ## every fuzzer, each for FUZZTIME
	@set -e; for file in $$(grep -rl '^func Fuzz' --include='*_test.go' .); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' $$file); do \
			echo $$name in $$(dirname $$file) for $(FUZZTIME); \
			go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
		done; done

fuzz-api: build ## both HTTP doors by their OpenAPI document, a minute each; needs Python 3, brings schemathesis by pip
	test/apifuzz/run.sh $(CURDIR)/bin/seckill $(CACHE)

install: bin/stack ## what the tests on real servers need: apt-get as root on Debian, RocketMQ by Maven
	bin/stack install

stack: install ## real servers in the foreground until ^C; their addresses in bin/stack.env
	bin/stack up --env-file bin/stack.env

.PHONY: bin/stack
bin/stack:
	@go build -o bin/stack ./test/harness/stack

bench: install build bin/bench ## figures on the real servers, each a ratio inside its run; the table and test/bench/out/result.json
	bin/stack exec -- bin/bench --binary bin/seckill

# On servers that run already (make stack, in another terminal), or on its own.
bench-quick: install build bin/bench ## figures 1, 3 and 5, in under four minutes
	set -- bin/bench --binary bin/seckill --figures 1,3,5 --runs 2 --window 3s --warm-up 20s; \
	if [ -f bin/stack.env ]; then . ./bin/stack.env && "$$@"; else bin/stack exec -- "$$@"; fi

.PHONY: bin/bench
bin/bench:
	@go build -o bin/bench ./test/bench

bench-micro: install build ## the benchmarks beside each adapter
	bin/stack exec -- go test -tags stack -p 1 -timeout 60m -run '^$$' -bench . -benchmem ./...

# `make fault` plays all layers in full, which takes hours; SCALE=0.25 a quarter, L="L5 L6" two of them.
L     ?= L4 L5 L6 L7 L8 L9 L10 L12
SCALE ?= 1

fault: install build ## the fault campaign (SCALE=0.25, L=L5), then its figures; takes hours
	bin/stack exec -- $(MAKE) fault-layers L="$(L)" SCALE=$(SCALE)

# A layer that fails keeps none of the others from being played.
fault-layers:
	@status=0; for layer in $(L); do \
		rm -f test/fault/out/$$layer.json; \
		SECKILLTEST_SCALE=$(SCALE) go test -tags stack -count=1 -timeout 12h -v -run "^Test$${layer}([^0-9]|$$)" ./test/fault || status=1; \
	done; \
	go run ./test/fault/table $(L) || status=1; exit $$status

verify: verify-mocks verify-client verify-format lint verify-deploy ## what is committed is generated, tidy, formatted and linted
	go mod tidy -diff
	go vet -tags stack ./...

verify-mocks:
	go generate ./application/port/...
	git diff --exit-code -- $(MOCKS)
	@new=$$(git ls-files --others --exclude-standard -- $(MOCKS)); \
	if [ -n "$$new" ]; then echo "generated and not committed: $$new" >&2; exit 1; fi

# Its generator is a module of its own.
verify-client:
	cd adapters/doorclient/generate && go mod tidy -diff
	go generate ./adapters/doorclient
	git diff --exit-code -- adapters/doorclient

verify-format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (make fmt):" >&2; echo "$$files" >&2; exit 1; fi

# Its parsers are a module of their own. What it reads lies outside of it, so that a kept result would be an old one.
verify-deploy:
	cd bootstrap/deploy/check && go mod tidy -diff && go vet ./... && go test -count=1 ./...

generate: ## mocks and other generated files
	go generate ./...

fmt: ## format the code
	gofmt -w .

lint: $(LINT) ## golangci-lint, with the import arrows
	$(LINT) run

$(LINT):
	GOBIN=$(dir $(LINT)) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

clean: ## remove what was built
	rm -rf bin
