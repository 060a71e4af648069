.PHONY: help check fuzz bench e2e reports proto release
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: ## format, tidy, vet, tests, race, lint, arrows, docs' code
	bash .ci/run format tidy vet test race lint

fuzz: ## every fuzz target for a minute (FUZZTIME=5m for longer)
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep ^Fuzz); do \
			echo "== $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $${FUZZTIME:-1m} $$pkg || exit 1; \
		done; \
	done

bench: ## the gate beside the bare pieces (all peers: GOWORK=off go -C bench run . overhead)
	go test -run '^$$' -bench Gate ./admission

e2e: ## real Redis, Prometheus, browser, nginx (installs them with apt)
	bash .ci/run modules e2e

reports: ## docs/field-reports.md, from the comments above the tests
	go test ./internal/house -run FieldReports -update

proto: ## the Go code of the option for proto files (needs protoc and protoc-gen-go)
	go -C admission/grpcgate generate ./admissionpb

release: ## the commit and tags of VERSION=v0.1.0, dry; REAL=yes tags this repository
	bash .ci/release $(if $(REAL),-real) $(VERSION)
