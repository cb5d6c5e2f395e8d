# MCPx. `make` lists the targets.

GO          ?= go
BIN         := $(CURDIR)/bin
TEST_FLAGS  ?=
BENCH_FLAGS ?= -benchtime 100x
DEMO_FLAGS  ?=
DEV_FLAGS   ?=

# The race detector needs a C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# The temporal program: the one MCPX_TEMPORAL names, else the one on the PATH, else one built here from the module
# pinned in tools/temporal.
TEMPORAL := $(or $(MCPX_TEMPORAL),$(shell command -v temporal 2>/dev/null),$(BIN)/temporal)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Lists the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Builds bin/mcpx
	$(GO) build -trimpath -o $(BIN)/mcpx .

.PHONY: temporal
temporal: $(filter $(BIN)/temporal,$(TEMPORAL)) ## Builds bin/temporal, unless a temporal is on the PATH
	@echo "temporal: $(TEMPORAL)"

# The first build compiles a whole Temporal server, which takes some minutes. Only a new pin repeats it.
$(BIN)/temporal: tools/temporal/go.mod tools/temporal/go.sum
	@echo "building the Temporal CLI (once; this takes some minutes)"
	$(GO) -C tools/temporal build -o $@ \
		-ldflags "-X github.com/temporalio/cli/temporalcli.Version=$$(sed -n 's,.*github.com/temporalio/cli v\([^ ]*\).*,\1,p' $<)" \
		github.com/temporalio/cli/cmd/temporal
	@touch $@

.PHONY: demo
demo: build temporal ## Tells the story on real servers (DEMO_FLAGS="--yes" asks nothing)
	MCPX_TEMPORAL="$(TEMPORAL)" $(BIN)/mcpx demo workspace $(DEMO_FLAGS)

.PHONY: dev
dev: build temporal ## Runs Temporal, a worker and the example applications
	MCPX_TEMPORAL="$(TEMPORAL)" $(BIN)/mcpx dev $(DEV_FLAGS)

.PHONY: test
test: temporal ## Runs every test, those with a real Temporal server included
	MCPX_TEMPORAL="$(TEMPORAL)" $(GO) test $(RACE) -timeout 20m $(TEST_FLAGS) ./...

.PHONY: test-short
test-short: ## Runs the tests that need no Temporal server
	$(GO) test $(RACE) -short -timeout 10m $(TEST_FLAGS) ./...

.PHONY: bench
bench: temporal ## Measures a transaction beside a bare workflow with the same calls
	MCPX_TEMPORAL="$(TEMPORAL)" $(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(BENCH_FLAGS) ./...

.PHONY: lint
lint: $(BIN)/golangci-lint ## Checks style and the direction of dependencies
	$(BIN)/golangci-lint run

.PHONY: workflowcheck
workflowcheck: $(BIN)/workflowcheck ## Checks that workflow code is deterministic
	$(BIN)/workflowcheck -config tools/lint/workflowcheck.yaml ./...

$(BIN)/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	$(GO) -C tools/lint build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(BIN)/workflowcheck: tools/lint/go.mod tools/lint/go.sum
	$(GO) -C tools/lint build -o $@ go.temporal.io/sdk/contrib/tools/workflowcheck
	@touch $@

.PHONY: compose-check
compose-check: ## Checks docker-compose.yml
	@if docker compose version >/dev/null 2>&1; then docker compose config --quiet; \
	elif command -v docker-compose >/dev/null 2>&1; then docker-compose config --quiet; \
	else echo "compose-check needs Docker Compose: install the docker compose plugin" >&2; exit 1; fi
	@echo "docker-compose.yml is fine"

.PHONY: clean
clean: ## Removes bin/
	rm -rf $(BIN)
