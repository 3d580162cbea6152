# The verbs of the project, the same here, in CI, in README and in CONTRIBUTING.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Any Python of 3.10 or later with venv will do to begin with.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
BUILD := build
STEP := tools/step.sh
# Images of containers set it by habit: each of the thousands of processes that tests start would
# compile the library again, and pytest every test.
unexport PYTHONDONTWRITEBYTECODE

DEMO_REQUESTS ?= 300
DEMO_LAG_MS ?= 100
# For the evaluation: --quick takes minutes, --only table1,figure6 less than everything.
BENCH_ARGS ?=
LOAD_BARRIERS ?= 100000
LOAD_RESPONSES ?= 1000000
# The stores whose real servers the tests use; those that are not named are skipped.
STORES ?= embedded redis rabbitmq mongodb mysql mariadb postgresql dynamodb s3 sns
PYTEST_ARGS ?=
# For `make programs`: which ones and which clients, with commas (all without), how many steps of
# each client, what they are drawn from, and how many clients run at a time.
ONLY ?=
CLIENTS ?=
STEPS ?= 300
SEED ?= 0
JOBS ?= 2
# Why counts of `make budgets` rise.
REASON ?=
# An application on the stack: train-ticket or social-graph.
PROFILE ?=

.PHONY: help demo check mypy pyright budgets cpp java affected test programs ci nightly newer tests-need load bench bench-social-graph bench-train-ticket docs stores containers up down clean

help: ## show this table
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# A stamp per extra: pip runs again only when a pyproject.toml changed.
$(VENV)/.made:
	@tools/make_venv.sh "$(PYTHON)" "$(VENV)"
	@touch $@

$(VENV)/.with-%: $(VENV)/.made pyproject.toml testing/pyproject.toml tools/constraints.txt tools/drivers.txt
	@echo "installing antipode-xcy[$*] into $(VENV)"
	@$(PIP) install -c tools/constraints.txt -c tools/drivers.txt -e '.[$*]' -e testing
	@touch $@

demo: $(VENV)/.with-bench ## notifications overtake posts, and barrier() prevents it (needs Python alone)
	@mkdir -p $(BUILD)/demo
	@$(STEP) demo $(PY) -m benchmarks.post_notification --post-storage embedded --notifier embedded \
	  --requests $(DEMO_REQUESTS) --lag-ms $(DEMO_LAG_MS) --json $(BUILD)/demo/post_notification.json

check: $(VENV)/.with-dev ## lint, formatting, types, and the style that is a test
	$(STEP) ruff $(PY) -m ruff check .
	$(PY) -m ruff format --check .
	@$(MAKE) --no-print-directory -j2 --output-sync=target mypy pyright
	$(STEP) tidy $(PY) -m pytest -q -n 2 --dist loadfile tests/tidy
	@$(PY) -m tools.publishing missing

# Each needs one processor.
mypy pyright: $(VENV)/.with-dev
	$(STEP) $@ $(PY) -m $@ $(if $(filter pyright,$@),--pythonpath $(PY))

budgets: tests-need ## count anew what the library adds to each call, into tests/budgets (REASON="..." for what rises)
	@PATH="$$PATH:/usr/sbin:/sbin:/usr/local/sbin" $(PY) -m pytest -q -ra -n0 tests/budgets --write-budgets --budgets-reason "$(REASON)"

stores: ## install the real servers that the tests use, or say what to install
	@PYTHON="$(firstword $(wildcard $(PY)) $(PYTHON))" tools/install_stores.sh $(STORES)

cpp: ## build the C++ library and run its tests
	@$(STEP) cpp tools/build_cpp.sh

java: ## build the Java library and run its tests
	@$(STEP) java tools/build_java.sh

affected: tests-need ## the quick tests that your change reaches, while you work (BASE=main, LIST=1: only say which)
	@STORES="$(STORES)" $(PY) -m tools.affected $(if $(BASE),--base $(BASE)) $(if $(LIST),--list) -- $(PYTEST_ARGS)

test: tests-need cpp java ## the quick tests, over real servers (a quarter of an hour on two processors)
	@STORES="$(STORES)" $(STEP) pytest-test tools/run_tests.sh $(PY) test $(PYTEST_ARGS)
	@echo "left to \`make ci\`: the wheel on the oldest and the newest Python, a short load, one store in containers"

programs: tests-need ## random programs of each client over real servers (ONLY=sessions STEPS=300 SEED=0): 1 for any fault
	@PATH="$$PATH:/usr/sbin:/sbin:$(CURDIR)/.stores/bin" $(PY) -m tests.programs --only "$(ONLY)" --clients "$(CLIENTS)" --steps $(STEPS) --seed $(SEED) --jobs $(JOBS)

ci: tests-need ## what CI adds: slower tests, the wheel on two Pythons, a short load, one store in containers
	@STORES="$(STORES)" $(STEP) pytest-ci tools/run_tests.sh $(PY) ci $(PYTEST_ARGS)
	@$(STEP) java-ci tools/build_java.sh ci
	@$(STEP) cpp-shared $(PY) -m tools.green unless cpp-shared tools/build_cpp.sh shared
	@PYTHON=$(PY) $(STEP) cpp-tidy tools/tidy_cpp.sh changed
	@$(STEP) fuzz-texts $(PY) -m tools.green unless fuzz-texts tools/fuzz_cpp.sh 200000 decode baggage
	@$(STEP) fuzz-shims $(PY) -m tools.green unless fuzz-shims tools/fuzz_cpp.sh 20000 session mongodb mysql redis
	@$(STEP) programs $(MAKE) --no-print-directory programs
	@$(STEP) programs-java $(MAKE) --no-print-directory programs ONLY=java STEPS=60 CLIENTS=ci
	@$(STEP) wheel $(PY) -m tools.green unless wheel $(PY) -m tools.wheel_matrix --ends
	@$(MAKE) --no-print-directory load LOAD_BARRIERS=1600 LOAD_RESPONSES=4000
	@PYTHON=$(PY) $(STEP) containers $(PY) -m tools.green unless containers tools/containers.sh quick
	@echo "left to \`make nightly\`: the wheel on the other Pythons and over older OpenTelemetry, the load, all containers"

# Two brokers in Java take long to start, and SeaweedFS to build: their tests are not in the quick tiers.
ci nightly bench: STORES += activemq
nightly bench: STORES += seaweedfs

# A step that failed does not end it; what failed stands in build/nightly/failed.md at the end.
nightly: export ANTIPODE_KEEP_GOING := 1

nightly: tests-need $(VENV)/.with-docs ## the rest: end-to-end, faults, fail-overs, Valkey, every Python and OpenTelemetry, load, containers (hours)
	@rm -rf $(BUILD)/ci
	@tools/fetch_debian.sh .stores prometheus
	@$(STEP) chromium bash -c "command -v chromium || tools/apt_install.sh chromium"
	@tools/fetch_elasticmq.sh .stores
	@STORES="$(STORES)" $(STEP) pytest-nightly tools/run_tests.sh $(PY) nightly $(PYTEST_ARGS)
	@$(STEP) cpp-tsan tools/build_cpp.sh tsan
	@$(STEP) cpp-asan tools/build_cpp.sh asan
	@for tier in ci nightly; do ANTIPODE_AGENT_CPP=cpp/build/asan/antipode_agent \
	  $(STEP) sanitized-contract-$$tier $(PY) -m pytest -q --tier=$$tier tests/contract -k "cpp and not java"; done
	@for preset in asan tsan; do ANTIPODE_AGENT_CPP=cpp/build/$$preset/antipode_agent \
	  TSAN_OPTIONS=die_after_fork=0 \
	  $(STEP) sanitized-clients-$$preset $(PY) -m pytest -q tests/integration/redis/test_hiredis.py tests/integration/mysql/test_libmariadb.py; done
	@for preset in asan tsan; do ANTIPODE_AGENT_CPP=cpp/build/$$preset/antipode_agent \
	  TSAN_OPTIONS="die_after_fork=0:suppressions=$(CURDIR)/cpp/tests/races.supp" \
	  $(STEP) sanitized-drivers-$$preset $(PY) -m pytest -q tests/integration/mongodb/test_libmongoc.py tests/integration/rabbitmq/test_librabbitmq.py; done
	@$(STEP) root-cpp tools/clean_root_cpp.sh
	@$(STEP) cpp-release tools/build_cpp.sh release
	@$(STEP) cpp-release-clang tools/build_cpp.sh release-clang
	@PYTHON=$(PY) $(STEP) cpp-tidy tools/tidy_cpp.sh
	@$(STEP) cpp-shared $(PY) -m tools.green record cpp-shared tools/build_cpp.sh shared
	@$(STEP) fuzz-texts $(PY) -m tools.green record fuzz-texts tools/fuzz_cpp.sh 100000000 decode baggage
	@$(STEP) fuzz-shims $(PY) -m tools.green record fuzz-shims tools/fuzz_cpp.sh 5000000 session mongodb mysql redis
	@$(STEP) fuzz-java tools/fuzz_java.sh 120
	@$(STEP) programs-java $(MAKE) --no-print-directory programs ONLY=java STEPS=9000 SEED=$$(date +%Y%m%d)
	@$(STEP) differential-java $(PY) -m tests.differential java --sequences 100000
	@$(STEP) differential-cpp $(PY) -m tests.differential cpp --sequences 100000
	@$(STEP) valkey tools/test_valkey.sh $(PY)
	@$(STEP) old-libpq tools/test_old_libpq.sh $(PY)
	@$(STEP) programs $(MAKE) --no-print-directory programs ONLY=cancel STEPS=3000
	@$(STEP) random-sessions $(MAKE) --no-print-directory programs ONLY=sessions STEPS=20000 SEED=$$(date +%Y%m%d)
	@ANTIPODE_FLAT=0 $(STEP) random-sessions-full $(MAKE) --no-print-directory programs ONLY=sessions CLIENTS=psycopg,psycopg-async STEPS=5000 SEED=$$(date +%Y%m%d)
	@$(STEP) random-brokers $(MAKE) --no-print-directory programs ONLY=brokers STEPS=3000 SEED=$$(date +%Y%m%d)
	@$(STEP) random-cpp $(MAKE) --no-print-directory programs ONLY=cpp STEPS=100000 SEED=$$(date +%Y%m%d)
	@for preset in asan tsan; do ANTIPODE_AGENT_CPP=cpp/build/$$preset/antipode_agent \
	  TSAN_OPTIONS="die_after_fork=0:suppressions=$(CURDIR)/cpp/tests/races.supp" LSAN_OPTIONS="suppressions=$(CURDIR)/cpp/tests/leaks.supp" \
	  $(STEP) random-cpp-$$preset $(MAKE) --no-print-directory programs ONLY=cpp STEPS=5000; done
	@$(STEP) random-failovers $(MAKE) --no-print-directory programs ONLY=failovers STEPS=3000 SEED=$$(date +%Y%m%d)
	@$(STEP) random-mutants $(PY) -m tests.mutants --count 30 --seed $$(date +%Y%m%d)
	@$(STEP) wheel $(PY) -m tools.green record wheel $(PY) -m tools.wheel_matrix
	@PATH="$$PATH:/usr/sbin" $(STEP) driver-suites $(PY) -m tools.driver_suites
	@$(MAKE) --no-print-directory load
	@PYTHON=$(PY) $(STEP) containers $(PY) -m tools.green record containers tools/containers.sh check
	@$(MAKE) --no-print-directory newer
	@$(PY) -m tools.ci_summary failed $(BUILD)/nightly/failed.md

newer: $(VENV)/.with-dev ## say which promised clients have a newer release than the tests here run with
	@$(STEP) newer $(PY) -m tools.clients

# What the tests of any tier need. One client compiles against headers that the stores bring.
tests-need: $(VENV)/.with-dev stores
	@[[ " $(STORES) " != *" mysql "* ]] || $(MAKE) --no-print-directory $(VENV)/.with-mysqlclient

containers: ## an engine and the stores' images; stand-ins where these cannot be pulled
	@tools/containers.sh engine
	@tools/containers.sh images

up: ## start the stack of docker-compose.yml: two regions of every store (PROFILE=train-ticket: an application, too)
	@tools/containers.sh up $(PROFILE)

down: ## stop that stack and remove its data
	@tools/containers.sh down

load: $(VENV)/.with-dev stores ## an hour's worth of barriers over each store in minutes, then a million responses
	@ANTIPODE_LOAD_BARRIERS=$(LOAD_BARRIERS) ANTIPODE_LOAD_RESPONSES=$(LOAD_RESPONSES) $(STEP) load tools/run_load.sh $(PY) $(STORES)

bench: $(VENV)/.with-dev stores ## the benchmarks into build/bench, costs and evaluation into docs/results (86 minutes)
	@tools/run_benchmarks.sh $(PY) $(BUILD)/bench $(BENCH_ARGS)

bench-social-graph: $(VENV)/.with-dev stores ## the paper's Figure 8, into docs/results (an hour and a half; goes on after Ctrl-C)
	@PATH="$$PATH:/usr/sbin:/sbin:/usr/local/sbin" $(PY) -m benchmarks.social_graph bench $(BENCH_ARGS)

bench-train-ticket: $(VENV)/.with-dev ## TrainTicket under load, into docs/results/train-ticket.md (an hour; needs Go and Maven)
	@$(MAKE) --no-print-directory stores STORES="mysql mongodb rabbitmq redis"
	@PATH="$$PATH:/usr/sbin:/sbin:/usr/local/sbin" $(PY) -m benchmarks.train_ticket.bench $(BENCH_ARGS)

docs: $(VENV)/.with-docs ## the documentation, into build/site
	NO_MKDOCS_2_WARNING=1 $(STEP) docs $(PY) -m mkdocs build --strict --site-dir $(BUILD)/site

clean: ## remove what the other verbs made, the virtual environments included
	rm -rf $(BUILD) cpp/build java/target java/*/target benchmarks/train_ticket/java/*/target benchmarks/social_graph/services/java/target dist .tox .mypy_cache .pytest_cache .ruff_cache .hypothesis .venv .venv-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
