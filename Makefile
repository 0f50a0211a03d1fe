# gridcast. `make run` and `make test` need nothing but Go; the rest says what it needs.
SHELL    := /bin/bash
BIN      := .var/bin
VERSION  := $(shell sed -n 's/^var version = "\(.*\)"$$/\1/p' deploy/gridcast/version.go)
COMMIT   := $(or $(shell git rev-parse HEAD 2>/dev/null),unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
FUZZTIME ?= 10s

.PHONY: run build test simulate season predictions mutants codemutants trust arm64 lies race lint fuzz openapi bench backtest replay cost crosscheck check tools release image clean

run: build            ## the whole service on embedded seasons, no configuration
	@$(BIN)/gridcast serve --demo $(ARGS)

build:                ## the one binary
	@[ -x $(BIN)/gridcast ] || echo 'Compiling gridcast: the first time this fetches modules and takes one to two minutes, later some seconds.'
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/gridcast ./deploy/gridcast

test:                 ## every test that needs nothing but Go; lists what was skipped
	@deploy/test.sh $(ARGS)

simulate:             ## SEEDS simulated weeks of a whole installation, with crashes, faults of the storage and people; SEED=n replays one
	@SEEDS=$(or $(SEEDS),30) SEED=$(SEED) go test -count=1 -v -timeout 120m -run '^TestWeeks$$' ./deploy/simulate

season:               ## 2025 and 2026 as they happened, unattended: picks, their bases, growth of the store (needs F1DB's history)
	@GRIDCAST_SEASONS=all go test -count=1 -v -timeout 30m -run 'TestSeasons2025And2026|TestQualifying|TestGrowth' ./deploy/service

predictions:          ## the figures of deploy/docs/predictions.md, computed anew (needs F1DB's release and lap times); ARGS=-update writes them
	@GRIDCAST_SEASONS=all go -C deploy/lab test -count=1 -v -timeout 30m -run 'TestPredictionsFigures' . $(ARGS)
	@go -C deploy/lab test -count=1 -run 'TestPredictionsPage' . $(ARGS)
	@GRIDCAST_SEASONS=all go -C deploy/lab test -count=1 -timeout 30m -run 'TestGridIsWorth|TestEmbeddedFigures|TestPublishedLive|TestNoPick|TestRecord' ./backtest ./titles

arm64: build          ## versions of this machine made again by the program of arm64, byte for byte (needs qemu-user-static)
	@GOARCH=arm64 go test -count=1 -exec qemu-aarch64-static ./builder/predict/portable ./builder/predict/matrix ./schemas/wire
	@GRIDCAST_ARM64=all go test -count=1 -v -timeout 20m -run '^TestArm64$$' ./deploy/gridcast

lies: build           ## each lie of a source told to gridcast serve over loopback: it is applied, waits, is refused or is reported
	@GRIDCAST_LIES=$(CURDIR)/$(BIN)/gridcast go test -count=1 -v -run 'TestLies' ./builder/ingest

mutants:              ## one mistake in each cell of three recorded weekends: it is held, waits, is harmless, or is published wrong (needs F1DB's history); ARGS=1/4 judges a quarter
	@GRIDCAST_MUTANTS=$(or $(ARGS),all) go test -count=1 -v -timeout 60m -run '^TestMutants$$' ./builder/assemble

codemutants:          ## sixty small faults in the code by a SEED, five of each of twelve kinds: a test fails, or the fault is shown
	@go -C deploy/lab run ./codemutants --seed $(or $(SEED),1) $(ARGS)

crosscheck:           ## all seasons since 1950 as served, against the tables of F1DB and against each other (needs F1DB's release)
	@GRIDCAST_SEASONS=all go test -count=1 -v -run '^TestAllSeasons$$' ./deploy/gridcast

trust: build          ## the fault matrix: each part killed, stopped, slow, lying, damaged, full, read-only; writes deploy/docs/trust.md
	@GRIDCAST_TRUST=$(CURDIR)/$(BIN)/gridcast go test -count=1 -timeout 20m -parallel 4 -run '^TestMatrix$$' ./deploy/trust -args -write

race:                 ## what runs beside something, under the race detector (needs gcc), less the whole seasons
	@deploy/test.sh -race -short

lint:                 ## gofumpt, golangci-lint with vet, dead code
	@deploy/lint.sh

fuzz:                 ## each fuzz target for FUZZTIME
	@deploy/fuzz.sh $(FUZZTIME)

openapi:              ## the OpenAPI document before redocly, spectral and TypeScript (needs npm)
	@deploy/openapi/check.sh

bench: build          ## request path and servers side by side, or with ARGS=load two edges above their capacity
	@deploy/lab/bench/run.sh $(ARGS)

backtest replay:      ## a model on past seasons; a recorded race timed. ARGS='--from 2010 --to 2026 --basis grid --archive FILE --json'
	@CGO_ENABLED=0 go -C deploy/lab build -trimpath -o ../../$(BIN)/lab .
	@$(BIN)/lab $@ $(ARGS)

cost: build           ## memory, starts and bytes on this machine, as a table or with ARGS=--json; fills deploy/docs/capacity.md, but not with ROWS=keys
	@GRIDCAST_COST=$(CURDIR)/$(BIN)/gridcast GRIDCAST_COST_DOCUMENT=$(if $(ROWS),,$(CURDIR)/deploy/docs/capacity.md) \
		go -C deploy/lab test -count=1 -timeout 30m -run '^TestCost$$$(if $(ROWS),/$(ROWS))' ./cost >&2 && cat .var/cost.$(if $(filter --json,$(ARGS)),json,txt)

check: build lint openapi test race fuzz   ## everything CI runs except the servers it installs

tools:                ## linters at the versions of deploy/tools/go.mod
	@cd deploy/tools && GOBIN=$(CURDIR)/$(BIN) go install tool

release:              ## archives, bills of materials, typed clients and checksums of this commit, in .var/release; ARGS='--sign FILE' signs them
	@deploy/tools/npm.sh
	@cd deploy/kit && go run . --version $(VERSION) --commit $(COMMIT) --time $(shell git log -1 --format=%ct) $(ARGS)

image:                ## an image of this checkout by deploy/Dockerfile (needs Docker)
	docker build -f deploy/Dockerfile --build-arg SOURCE_DATE_EPOCH=$(shell git log -1 --format=%ct) --build-arg COMMIT=$(COMMIT) -t gridcast:$(VERSION) .

clean:
	rm -rf .var
