# infer: build, test and check. `make` alone builds bin/infer: with the door to
# the GPU driver when there is a C compiler, else (or with CGO_ENABLED=0) for the
# CPU only. Either binary runs on machines without a GPU.
export GOTOOLCHAIN = go1.27.3

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# CGO_ENABLED, tags and C flags. nomsgpack leaves out gin's MessagePack, which we
# do not serve and which compiles slowly.
ENV     := $(shell scripts/cuda-env.sh)
CPU_ENV := $(shell CGO_ENABLED=0 scripts/cuda-env.sh)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOL    := go tool -modfile=tools/go.mod
VENV    := .venv
# Arguments for `make serve`, for instance: make serve ARGS="--port 9000"
ARGS    ?=
# Flags for `make test`, for instance: make test TESTFLAGS=-v
TESTFLAGS ?=

.PHONY: build serve test faults test-race test-purego test-clients lint bench bench-compare fuzz ptx clean

build:
	$(ENV) go build -ldflags '$(LDFLAGS)' -o bin/infer ./cmd/infer

# Serves the embedded model; once it is ready, prints a request to try.
serve: build
	@exec bin/infer serve --log-format human $(ARGS)

# Needs Go only, no network; with a C compiler the CUDA parts are tested too.
test:
	$(ENV) go test -timeout 20m $(TESTFLAGS) ./...

# Every fault on every simulated machine: no wrong token. TOPOLOGIES=DIR adds
# machines; the outcomes are written to docs/faults.txt.
TOPOLOGIES ?=
faults:
	$(ENV) go test -count=1 -timeout 60m -run 'Matrix' ./runtime/faults -full -table $(CURDIR)/docs/faults.txt -topologies '$(abspath $(TOPOLOGIES))' -v

# The race detector needs a C compiler. Left out: what has no goroutine and no
# lock of its own, and the GPU's check. Vetting is part of lint.
test-race:
	$(ENV) go test -vet=off -timeout 20m -race -short $$($(ENV) go list ./... | grep -vE \
	  '/(gpucheck|rules|models|layers|arch|devicemap|kernels|ref|asmgen|kvcache|tensor|jinja)$$')

# The build without any assembly, and without a C compiler: what is other code
# there, and models that run on it.
test-purego:
	$(CPU_ENV) go test -vet=off -timeout 20m -tags nomsgpack,purego ./runtime/internal/... ./runtime/kernels/cpu/... ./runtime/kernels/cuda ./models/...
	$(CPU_ENV) go test -vet=off -timeout 20m -tags nomsgpack,purego -short -run 'Tiny|KnownToSay|Allocate' ./runtime/engine

# Real clients (the openai package, huggingface_hub) against the built binary.
test-clients: build $(VENV)/.installed
	$(VENV)/bin/python -m pytest -q tests/clients

$(VENV)/.installed: tests/clients/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q --disable-pip-version-check -r tests/clients/requirements.txt
	touch $@

lint:
	$(ENV) go vet ./...
	$(ENV) $(TOOL) staticcheck ./...
	$(CPU_ENV) go vet ./runtime/internal/... ./runtime/kernels/cuda ./cmd/infer
	@out=$$($(TOOL) gofumpt -l .); [ -z "$$out" ] || { echo "not gofumpt'ed:"; echo "$$out"; exit 1; }

bench:
	$(ENV) go test -run '^$$' -bench . -benchtime 1s ./runtime/kernels/... ./runtime/tokenizer/... ./runtime/engine/...

# The tables of docs/performance.md: against llama.cpp, an hour or so of an idle machine.
bench-compare: build
	scripts/bench/bench-compare.sh

# Each fuzz target for a while: make fuzz FUZZTIME=10m
FUZZTIME ?= 20s
fuzz:
	@export $(CPU_ENV); for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

# The GPU kernels, compiled anew; needs clang 19 (no CUDA, no GPU).
ptx:
	runtime/kernels/cuda/compile.sh

clean:
	rm -rf bin dist $(VENV)
