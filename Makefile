# SPDX-License-Identifier: MIT
# A thin front to Meson: everything real is in meson.build. `make help` lists the targets.
BUILD = build
PREFIX = /usr/local
DESTDIR =
# More options for `meson setup`, as MESON_OPTS=-Dbuildtype=release
MESON_OPTS =
# Of the guests that `make lab` runs tests in: arm64 or x86_64; and tests by name, instead of all
ARCH = arm64
TESTS =

NINJA = $(shell command -v ninja || command -v ninja-build || echo ninja)
TALLY = $(BUILD)/cli/tally

.PHONY: all setup demo test lab bench install clean help

all: $(BUILD)/build.ninja
	@$(NINJA) -C $(BUILD)

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "make: meson is missing; 'make setup' installs what the build needs" >&2; exit 1; }
	@log=$$(mktemp) && if meson setup $(BUILD) --prefix $(PREFIX) $(MESON_OPTS) >$$log 2>&1; \
	then rm -f $$log; else cat $$log; rm -f $$log; exit 1; fi

setup:
	@scripts/packages.sh build
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja

demo: setup
	@$(NINJA) -C $(BUILD) cli/tally examples/workload
	@scripts/demo.sh $(BUILD)

test:
	@scripts/packages.sh build test lab
	@$(MAKE) --no-print-directory all
	@scripts/test.sh $(BUILD)

lab:
	@scripts/packages.sh build lab
	@tests/lab/run.py --arch $(ARCH) $(TESTS)

bench: setup
	@$(MAKE) --no-print-directory all
	@bench/run.sh $(BUILD)

install: $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@$(NINJA) -C $(BUILD)
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi
	@echo "installed in $(DESTDIR)$(PREFIX)"

clean:
	rm -rf $(BUILD) build-lab build-asan build-dev-gcc build-dev-clang demo.svg demo.data demo.data.old

help:
	@echo "make           builds in $(BUILD)/"
	@echo "make demo      installs what the build needs, builds, counts and profiles a small program"
	@echo "make test      the same set-up, plus the tests' referees; builds and runs all tests"
	@echo "make lab       tests in an emulated machine that has hardware counters; ARCH=$(ARCH), or x86_64"
	@echo "make bench     side by side with perf, as ratios"
	@echo "make install   PREFIX=$(PREFIX) DESTDIR="
	@echo "make setup     installs what the build needs (scripts/packages-build.txt), configures"
	@echo "make clean     removes what was built"
