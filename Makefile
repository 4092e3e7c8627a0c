# Everything stays inside this folder: .venv, .tools, azurite/node_modules. Nothing global is touched.
# Needs make and Python 3.11 or newer; the rest is fetched once, and only what the machine lacks.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The first Python that is new enough; `make PYTHON=/path/to/python3.12 ...` overrides. It is called by
# its own path: uv would make .venv anew at each call if this were a version manager's shim.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
    $$p -c 'import sys; sys.version_info < (3, 11) and sys.exit(1); print(sys._base_executable)' 2>/dev/null && break; done)

uv := .tools/bin/uv
javascript := tests/integration/emulator/javascript
java := tests/integration/emulator/java
go := tests/integration/emulator/go
keda := tests/integration/autoscaling/go
kustomize := tests/integration/kubernetes/go
positions := tests/integration/positions
typing := tests/typing
run := .venv/bin
say := @printf '>> %s\n'

# Arguments that are passed on to the program: make demo ARGS='--store sqlite', make sim SEEDS=2000.
ARGS ?=
SEEDS ?= 10000
MINUTES ?= 10
HISTORY ?= 10000000

# Spark is half a gigabyte: it is installed only for the tests, or by `make spark`.
extras := --extra demo $(if $(wildcard .tools/spark/.done),--extra spark)
ifneq ($(wildcard .tools/java),)
export JAVA_HOME := $(CURDIR)/.tools/java
endif

# uv uses the Python that make found, and no other environment.
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/.venv
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME
# Container images set this variable; without bytecode, each of hundreds of processes would compile
# everything that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## show this list
	@echo 'eventproc: make <target>'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: venv $(if $(findstring sqlite,$(ARGS)),,azurite) ## watch a group process a real data set, in a browser too, without cloud or Docker (two minutes)
	@$(run)/eventproc demo $(ARGS)

.PHONY: demo-rabbitmq
demo-rabbitmq: venv .tools/rabbitmq/.done ## watch pods share RabbitMQ's queues, and lose no order (RabbitMQ: 60 MB; a minute)
	@$(run)/python -m examples.rabbitmq_statefulset

.PHONY: demo-spark
demo-spark: venv .tools/spark/.done ## watch Spark lose an executor, and no order (Spark: 500 MB; two minutes)
	@JAVA_HOME="$(CURDIR)/.tools/java" SPARK_HOME="$(CURDIR)/.tools/spark" $(run)/python -m examples.spark_executor_killed

# --- daily work ------------------------------------------------------------------------------

older_sparks := 4.0.5 4.1.4 4.2.0
parts := venv azurite clients .tools/spark/.done .tools/rabbitmq/.done .tools/kafka/.done .tools/kafka_source/.done .tools/chromium/.done
pytest := pytest --numprocesses 4 --dist loadgroup --no-loadscope-reorder

.PHONY: test
test: $(parts) ## run the tests: every promise once, each real part once (four to eight minutes on two cores)
	@$(run)/$(pytest) -m 'not (long or more)'

.PHONY: test-unit
test-unit: venv ## run the unit tests, which need nothing but Python packages (those of Spark are skipped without it; 45 s on two cores)
	@$(run)/$(pytest) --numprocesses auto tests/unit

.PHONY: test-long
test-long: $(parts) ## run the other tests: each promise with each real part, clusters, outages, storms, demos, more seeds
	@$(run)/$(pytest) -m 'long or more'

# Each older version of Spark has an environment of its own, which is made when it is tested.
spark_warnings := -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

.PHONY: $(addprefix test-spark-,$(older_sparks))
$(addprefix test-spark-,$(older_sparks)): test-spark-%: .tools/spark-%/.done azurite
	$(say) 'Spark $*'
	@.tools/spark-$*/bin/pytest --quiet -m 'not long' $(spark_warnings) \
	    tests/spark tests/integration/spark_integration tests/unit/spark_integration

.PHONY: test-lowest
test-lowest: .tools/lowest/.done ## run the unit tests on the lowest version of each dependency that pyproject.toml admits
	@.tools/lowest/bin/$(pytest) -W ignore::DeprecationWarning tests/unit

.PHONY: night
night: $(parts) ## run what takes hours: each version of Spark, with kills, a storm on Kafka, ten million captured events, every SDK in a group
	@$(run)/pytest -m night
	@for version in $(older_sparks); do \
	    $(MAKE) test-spark-$$version && \
	    .tools/spark-$$version/bin/pytest -m 'night or long' $(spark_warnings) \
	        tests/spark/test_kills.py tests/spark/test_pipelines.py || exit 1; done
	@$(MAKE) storm MINUTES=10 ARGS='--hub kafka --store sqlite'
	@$(MAKE) capture
	@$(MAKE) interop

.PHONY: coverage
coverage: $(parts) ## run every test, and measure coverage (twice the time)
	@$(run)/coverage erase
	@$(run)/coverage run -m $(pytest)
	@$(run)/coverage combine --quiet
	@$(run)/coverage report

.PHONY: lint
lint: venv $(typing)/node_modules/.done ## check format, style, types, layers and dependencies
	$(say) 'format'
	@$(run)/ruff format --check --quiet || { $(run)/ruff format --diff --quiet; echo 'make fmt repairs this' >&2; exit 1; }
	$(say) 'style'
	@$(run)/ruff check --quiet
	$(say) 'types'
	@$(run)/mypy
	@PATH="$(CURDIR)/.tools/node/bin:$$PATH" node $(typing)/node_modules/pyright/index.js -p $(typing) >.tools/pyright.txt || { cat .tools/pyright.txt; exit 1; }
	$(say) 'layers'
	@$(run)/lint-imports --no-logo >.tools/layers.txt || { cat .tools/layers.txt; exit 1; }
	$(say) 'dependencies'
	@$(run)/deptry eventproc checkpointstores spark_integration >.tools/dependencies.txt 2>&1 || { cat .tools/dependencies.txt; exit 1; }

.PHONY: check
check: lint test ## what must pass before a change is merged: lint and test

.PHONY: fmt
fmt: venv ## format, and fix what can be fixed automatically
	@$(run)/ruff check --fix --quiet || true
	@$(run)/ruff format

.PHONY: sim
sim: venv ## simulate many more groups than the tests do (SEEDS=10000: ten minutes on two cores)
	@$(run)/python -m tests.simulation --seeds $(SEEDS) $(ARGS)

.PHONY: pairs
pairs: venv ## play every pair of faults in a dozen short lives of a group (hours; ARGS='--scenario join', --singles)
	@$(run)/python -m tests.simulation.pairs $(ARGS)

.PHONY: storm
storm: venv azurite ## run real processes through kills, freezes, outages and wrong clocks, on each store (MINUTES=10)
	@$(run)/python -m tests.integration.delivery --minutes $(MINUTES) $(ARGS)

.PHONY: capture
capture: venv ## read a hub that forgets through its Capture files, with kills, late and damaged files (HISTORY=10000000)
	@$(run)/python -m tests.integration.capture $(HISTORY)

.PHONY: interop
interop: MINUTES = 15
interop: venv azurite clients ## run processors of every Azure SDK and ours in one group, through faults, with short intervals and with defaults (MINUTES=15)
	@$(run)/python -m tests.integration.interop --minutes $(MINUTES) $(ARGS)

.PHONY: mistakes
mistakes: venv azurite ## draw mistakes by seed, make each in a copy, and see which the tests notice (hours; ARGS=--help)
	@$(run)/python -m tests.mistakes $(ARGS)

.PHONY: bench
bench: venv azurite rabbitmq kafka .tools/spark/.done ## measure, side by side with others, half an hour (ARGS=--quick, --help)
	@$(run)/python benchmarks/_run.py $(ARGS)

.PHONY: docs
docs: .tools/docs/.done ## build the documentation with its API reference, in build/site
	@rm -rf build/docs && mkdir -p build/docs
	@cp -r README.md CHANGELOG.md CONTRIBUTING.md CODE_OF_CONDUCT.md SECURITY.md LICENSE docs examples benchmarks dashboards deploy build/docs
	@NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build

.PHONY: package
package: $(uv) ## build source distribution and wheel, in dist, and run the README's program with each
	@rm -rf dist build/package
	@$(uv) build --quiet --python "$(PYTHON)"
	@for built in dist/*.whl dist/*.tar.gz; do \
	    $(uv) venv --quiet --clear --python "$(PYTHON)" build/package && \
	    $(uv) pip install --quiet --python build/package "$$built[cli,eventhubs]" && \
	    build/package/bin/eventproc --help >build/package/help.txt && \
	    build/package/bin/python bootstrap/try_package.py build/package/bin/python || exit 1; done
	@ls -l dist

.PHONY: diagrams
diagrams: venv ## draw the diagrams of the documentation from their text, in docs/images
	@$(run)/python docs/diagrams/draw.py

# --- tools ---------------------------------------------------------------------------------

.PHONY: venv
venv: .venv/.done ## fetch Python packages into .venv

.PHONY: azurite
azurite: azurite/node_modules/.done ## fetch Azurite (and Node.js when there is none)

.PHONY: clients
clients: $(javascript)/node_modules/.done $(addsuffix /.done,$(addprefix .tools/,azure_java azure_eph azure_go dapr keda kustomize)) ## fetch and build Azure's clients for JavaScript, Java and Go, Dapr's and KEDA's, and kustomize

.PHONY: rabbitmq
rabbitmq: .tools/rabbitmq/.done ## fetch RabbitMQ and Erlang from Debian's packages (60 MB)

.PHONY: kafka
kafka: .tools/kafka/.done ## fetch Apache Kafka from Maven Central (43 MB)

.PHONY: java
java: .tools/java ## find Java 17 or newer, or fetch one, into .tools

.PHONY: spark
spark: .tools/spark/.done ## fetch Spark into .venv (500 MB)

$(uv): bootstrap/uv.py
	@test -n "$(PYTHON)" || { echo 'eventproc: no Python 3.11 or newer found. Install one, or say which: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'eventproc: $(PYTHON) is older than Python 3.11' >&2; exit 1; }
	$(say) 'uv, the package installer'
	@"$(PYTHON)" bootstrap/uv.py $@

# Compiled now, by all cores: the first test would take three times as long.
.venv/.done: pyproject.toml uv.lock | $(uv)
	$(say) 'Python packages'
	@$(uv) sync --quiet --frozen --compile-bytecode --python "$(PYTHON)" $(extras)
	@touch $@

.tools/node/bin/node: bootstrap/node.sh | venv
	@bootstrap/node.sh $(uv)

# Any folder with a package-lock.json: Azurite (130 MB), the JavaScript client for one test, and Pyright.
%/node_modules/.done: %/package-lock.json .tools/node/bin/node
	$(say) 'npm packages for $*'
	@cd "$*" && PATH="$(CURDIR)/.tools/node/bin:$$PATH" \
	    npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null
	@touch $@

# Where it cannot be had, the script says why and makes nothing: its tests are skipped then.
.tools/rabbitmq/.done: bootstrap/rabbitmq.sh
	@bootstrap/rabbitmq.sh

.tools/kafka/.done: bootstrap/kafka.sh bootstrap/kafka.txt bootstrap/maven.py | .tools/java
	@bootstrap/kafka.sh $(run)/python .tools/java/bin/java

# For one test; where it cannot be had, that is skipped.
.tools/kafka_source/.done: bootstrap/kafka_source.txt bootstrap/maven.py | venv
	$(say) "Spark's Kafka source, from Maven Central (10 MB)"
	@$(run)/python bootstrap/maven.py $< $(@D)/jars && touch $@ || echo ">> Spark's Kafka source cannot be had here" >&2

.tools/chromium/.done: bootstrap/chromium.sh
	@bootstrap/chromium.sh

.tools/java: bootstrap/java.sh | venv
	@bootstrap/java.sh $(uv)

# Azure's clients for Java and Go, each in a program that tests drive. Where one cannot be built,
# its tests are skipped.
# Fetches the jars of list $<, and compiles program $(1). The compiler is one of azure_java's jars.
build_java = $(run)/python bootstrap/maven.py $< $(@D)/jars && \
    .tools/java/bin/java -cp '.tools/azure_java/jars/*' org.eclipse.jdt.internal.compiler.batch.Main -17 -nowarn \
    -cp "$$(printf '%s:' $(@D)/jars/*.jar)" -d $(@D)/classes $(1) && touch $@

.tools/azure_java/.done: bootstrap/azure_java.txt bootstrap/maven.py $(java)/Client.java | .tools/java
	$(say) "Azure's Java client, from Maven Central (20 MB)"
	@$(call build_java,$(java)/Client.java) || echo ">> Azure's Java client cannot be had here" >&2

.tools/azure_eph/.done: bootstrap/azure_eph.txt bootstrap/maven.py $(positions)/java/Host.java | .tools/azure_java/.done
	$(say) "Azure's older Java client, from Maven Central (3 MB)"
	@$(call build_java,$(positions)/java/Host.java) || echo ">> Azure's older Java client cannot be had here" >&2

.tools/go/bin/go: bootstrap/go.sh | venv
	@bootstrap/go.sh $(uv) || echo '>> Go cannot be had here' >&2

# Go in folder $(1).
go_in = cd $(1) && GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw' CGO_ENABLED=0 \
    GOPATH="$(CURDIR)/$(@D)/path" GOCACHE="$(CURDIR)/$(@D)/cache" "$(CURDIR)/.tools/go/bin/go"

# Builds the program in folder $(1) as .tools/NAME/client.
build_go = $(call go_in,$(1)) build -trimpath -o "$(CURDIR)/$(@D)/client" . && \
    rm -rf "$(CURDIR)/$(@D)/path" "$(CURDIR)/$(@D)/cache" && touch "$(CURDIR)/$@"

.tools/azure_go/.done: $(go)/go.mod $(go)/go.sum $(go)/main.go .tools/go/bin/go
	$(say) "Azure's Go client (a minute)"
	@$(call build_go,$(go)) || echo ">> Azure's Go client cannot be had here" >&2

.tools/dapr/.done: $(positions)/dapr/go.mod $(positions)/dapr/go.sum $(positions)/dapr/main.go .tools/go/bin/go
	$(say) "Dapr's component for Event Hubs (two minutes)"
	@$(call build_go,$(positions)/dapr) || echo ">> Dapr's component cannot be had here" >&2

.tools/keda/.done: $(keda)/go.mod $(keda)/go.sum $(keda)/main.go .tools/go/bin/go
	$(say) "KEDA's client of an external scaler (a minute)"
	@$(call build_go,$(keda)) || echo ">> KEDA's client cannot be had here" >&2

# With what the modules of KEDA and of Prometheus' operator say of their objects.
.tools/kustomize/.done: $(wildcard $(kustomize)/*.* $(kustomize)/crds/*) .tools/go/bin/go
	$(say) "kustomize (a minute)"
	@( $(call go_in,$(kustomize)/crds) mod download ) && \
	    cp $(@D)/path/pkg/mod/github.com/*/*/v*/config/crd/bases/keda.sh_scaledobjects.yaml \
	    $(foreach kind,podmonitors prometheusrules,$(@D)/path/pkg/mod/github.com/*/*/example/prometheus-operator-crd/monitoring.coreos.com_$(kind).yaml) $(@D) && \
	    $(call build_go,$(kustomize)) || echo '>> kustomize cannot be had here' >&2

# Spark gives its Python processes PySpark as a zip of sources, which each of them compiles.
# This SPARK_HOME has no such zip, so they import the installed package, which is compiled.
.tools/spark/.done: .venv/.done | .tools/java
	$(say) 'Spark (500 MB)'
	@$(uv) sync --quiet --frozen --python "$(PYTHON)" --extra demo --extra spark
	@mkdir -p $(@D)
	@home="$$($(run)/python -c 'import pyspark; print(pyspark.__path__[0])')" && \
	    ln -sfn "$$home/bin" "$$home/jars" "$$home/sbin" $(@D)
	@touch $@

# With Delta Lake, no release of which admits the newest PySpark, and its jars.
.tools/spark-%/.done: pyproject.toml uv.lock bootstrap/delta_jars.py | $(uv) .tools/java
	$(say) 'Spark $* (700 MB)'
	@$(uv) venv --quiet --clear --python "$(PYTHON)" $(@D)
	@$(uv) export --quiet --frozen --no-emit-project --no-emit-package pyspark --no-hashes \
	    --no-default-groups --group test --extra all --output-file $(@D)/locked.txt
	@$(uv) pip install --quiet --compile-bytecode --python $(@D) \
	    --requirements $(@D)/locked.txt pyspark==$* delta-spark==4.4.0 --editable .
	@mkdir $(@D)/spark && home="$$(echo $(CURDIR)/$(@D)/lib/python*/site-packages/pyspark)" && \
	    ln -s "$$home/bin" "$$home/jars" "$$home/sbin" $(@D)/spark
	@SPARK_HOME="$(CURDIR)/$(@D)/spark" $(@D)/bin/python bootstrap/delta_jars.py "$(CURDIR)/$(@D)/ivy" 2>$(@D)/ivy.txt || \
	    { cat $(@D)/ivy.txt; exit 1; }
	@touch $@

# A separate environment: what users depend on is as old as pyproject.toml admits, what only the tests
# need is locked.
.tools/lowest/.done: pyproject.toml uv.lock | $(uv)
	$(say) 'the lowest versions of all dependencies'
	@$(uv) venv --quiet --clear --python "$(PYTHON)" $(@D)
	@$(uv) pip compile --quiet --resolution lowest-direct --all-extras --python $(@D) \
	    pyproject.toml --output-file $(@D)/lowest.txt
	@$(uv) export --quiet --frozen --no-emit-project --no-hashes --only-group test --output-file $(@D)/test.txt
	@$(uv) pip install --quiet --python $(@D) --override $(@D)/lowest.txt \
	    --requirements $(@D)/lowest.txt --requirements $(@D)/test.txt --editable .
	@touch $@

# A separate environment: MkDocs reads the sources and does not import them.
.tools/docs/.done: pyproject.toml uv.lock | $(uv)
	$(say) 'MkDocs'
	@UV_PROJECT_ENVIRONMENT="$(CURDIR)/.tools/docs" $(uv) sync --quiet --frozen --python "$(PYTHON)" --only-group docs
	@touch $@

.PHONY: clean
clean: ## remove what tests and builds left behind
	@rm -rf build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	@find eventproc checkpointstores spark_integration tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## also remove everything that make fetched
	@rm -rf .venv .tools azurite/node_modules $(javascript)/node_modules $(typing)/node_modules
