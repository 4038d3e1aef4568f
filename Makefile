# One command each: build, demo, test, bench, torture, lint. `make help` lists them.
# The target folder lies outside the clone, so that a second clone builds in minutes.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/basalt/target
CARGO ?= cargo
PG_BIN ?= /usr/lib/postgresql/15/bin

.PHONY: help build demo test test-unit test-sql lint bench bench-planning torture deps-test clean

help:
	@echo "make build     release binary at bin/basalt"
	@echo "make demo      build, start a server, stream this repository's history into it, watch"
	@echo "make test      everything that guards main: lint, unit, model, crash and SQL tests"
	@echo "make bench     benchmarks beside PostgreSQL and DuckDB (see bench/README.md)"
	@echo "make bench-planning   how long TPC-H's queries take to parse and bind"
	@echo "make torture   hundreds of kills and power cuts; long random runs"
	@echo "make lint      format, clippy, house rules"

build:
	$(CARGO) build --release -p basalt
	mkdir -p bin
	cp -f $(CARGO_TARGET_DIR)/release/basalt bin/basalt

demo: build
	bin/basalt demo

# PostgreSQL 15 is the reference that SQL tests compare with; psql and pgbench drive the server.
deps-test:
	@if [ ! -x $(PG_BIN)/initdb ] || ! command -v openssl >/dev/null; then \
		echo "installing postgresql-15 (reference for the SQL tests) and openssl"; \
		sudo=$$( [ "$$(id -u)" = 0 ] || echo sudo ); \
		$$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq postgresql-15 openssl >/dev/null; \
	fi

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) run -q -p xtask -- tidy

# What the engine's tests say holds in whatever order files are. `cargo test -p basalt-engine` would compile what they need
# once more, with fewer features.
UNITS = --workspace --exclude basalt-it
test-unit:
	$(CARGO) test $(UNITS)
	engine=$$($(CARGO) test $(UNITS) --no-run 2>&1 | sed -n 's/.*(\(.*basalt_engine-[0-9a-f]*\))$$/\1/p'); \
		[ -n "$$engine" ] || { echo "cargo does not say where the engine's tests are" >&2; exit 1; }; \
		engine=$$(realpath "$$engine") && cd crates/engine && BASALT_TEST_CLUSTERING=v,id "$$engine"

test-sql: deps-test
	$(CARGO) build -p basalt
	$(CARGO) test -p basalt-it

test: deps-test lint test-unit test-sql

torture: deps-test build
	BASALT_TORTURE_CUTS=500 BASALT_MODEL_SECONDS=1200 BASALT_CONCURRENT_SECONDS=60 \
		$(CARGO) test --release -p basalt-sim -p basalt-bench-engine -- --nocapture
	BASALT_BIN=$(CURDIR)/bin/basalt BASALT_TORTURE=1 BASALT_GENERATE=200000 BASALT_ANALYZE=50000 BASALT_HISTORY_TXNS=100000 \
		$(CARGO) test --release -p basalt-it -- --nocapture

bench: build
	bench/run.sh

# Together with the server, so that libraries are compiled as for it.
bench-planning:
	$(CARGO) bench -p basalt -p basalt-query --bench planning

clean:
	rm -rf bin
