.PHONY: help check fuzz bench e2e
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: ## format, vet, tests, race, lint, arrows, docs' code
	bash .ci/run format vet test race lint

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
