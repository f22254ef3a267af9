# fmsort: build, install and test with PGXS.  "make help" prints the commands
# that have a "##" here.
#
# WERROR=1 makes warnings errors, ASSERT=1 compiles our assertions in; both
# are for development.  PG_CONFIG=... chooses the server, and so does PG_MAJOR=17
# among Debian's.

all: ## build; PG_CONFIG=... names the server

# The same choice as pg_config() of script/lib/common.sh: Debian's of PG_MAJOR,
# or its newest, else the PATH's.
ifeq ($(origin PG_CONFIG),undefined)
PG_CONFIG := $(lastword pg_config $(sort \
	$(wildcard /usr/lib/postgresql/$(or $(PG_MAJOR),*)/bin/pg_config)))
endif

EXTENSION = fmsort
# The control file is the only place of the version.
FMSORT_VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" fmsort.control)

MODULE_big = fmsort
SOURCES := $(wildcard src/*.c src/*/*.c src/*/*/*.c)
# PGXS installs what is named HEADERS.
FMSORT_HEADERS := $(wildcard src/*/*.h src/*/*/*.h)
OBJS = $(SOURCES:.c=.o)
# What it stands on, by the names that pkg-config knows.
LIBRARIES = liburing liblz4
# Every version's, so that each can be had and updated.
DATA = $(wildcard fmsort--*.sql)

# Every test in sql/ finds the extension created, and its session has the
# library loaded however the server is configured.
REGRESS = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=fmsort --outputdir=build/regress
REGRESS_PREP = build/regress

PG_CPPFLAGS = -Isrc -MMD -MP $(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null)
# The server's headers count as the system's: their warnings are not ours.
PG_CPPFLAGS += -isystem $(includedir_server)
# Callbacks and fmgr functions rarely use all of their arguments.
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Wno-unused-parameter
ifdef WERROR
PG_CFLAGS += -Werror
endif
ifdef ASSERT
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING=1
endif
SHLIB_LINK = $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null)

# JIT can inline nothing of a custom node, so no bitcode and no need of clang.
override with_llvm := no

EXTRA_CLEAN = $(OBJS:.o=.d) $(OBJS:.o=.gcno) build/flags build/unit build/regress build/log

PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
include $(PGXS)

install: ## install into the server of PG_CONFIG
uninstall: ## remove from it
installcheck: ## the regression tests on your own server, which has to run

installcheck: export PGOPTIONS += -c session_preload_libraries=fmsort \
	-c fmsort.min_rows=0

# pg_regress only repeats psql's message if it cannot connect.
installcheck: have-superuser
have-superuser:
	@is=$$(PGOPTIONS= $(bindir)/psql -X -A -t -d postgres -c 'SELECT rolsuper \
		FROM pg_roles WHERE rolname = current_user') && [ "$$is" = t ] || { \
		echo "make installcheck needs a server that runs, and a role that" \
		"is a superuser: PGUSER names one, else it has your name," \
		"$$(id -un). 'sudo -u postgres createuser --superuser" \
		"$$(id -un)' creates it. 'script/cluster make installcheck' needs" \
		"neither: it starts a server of its own." >&2; exit 1; }

.PHONY: have-superuser

$(OBJS): build/flags | have-libraries

# Holds the compiler's options, so that other options mean another build.
build/flags: FORCE | build
	@echo '$(CC) $(CFLAGS) $(CPPFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(CFLAGS) $(CPPFLAGS)' >$@

-include $(OBJS:.o=.d)

# Does FILE compile by itself, after postgres.h?  For make lint.
syntax:
	$(CC) $(CFLAGS) $(filter-out -MMD -MP,$(CPPFLAGS)) -Werror \
		-include postgres.h -fsyntax-only -x c $(FILE)

.PHONY: syntax

distclean: clean-build
else
all install installcheck uninstall unit:
	@echo "PostgreSQL's development files are missing: $(PG_CONFIG) knows" \
		"no PGXS. 'script/setup build' installs them;" \
		"PG_CONFIG=/path/to/pg_config chooses another server." >&2
	@exit 1

clean:
	rm -rf $(OBJS) fmsort.so $(EXTRA_CLEAN)

distclean: clean clean-build

.PHONY: all install installcheck uninstall unit clean distclean
endif

# ---- unit tests: test/unit/FOLDER/test_*.c -----------------------------------
# The folders are those of src/.  A program's first lines name the files of src/
# that it tests, a folder as "io/":
#   /* links: sort/sizing merge/modes/ */
# The line after that may have options for the compiler and the linker; then
# that program has objects of its own:
#   /* flags: -fsanitize-coverage=trace-pc */
# test/unit/shim.c stands in for what the server would provide.

UNIT_SOURCES := $(sort $(wildcard test/unit/test_*.c test/unit/*/test_*.c))
UNIT_PROGRAMS := $(UNIT_SOURCES:test/%.c=build/%)
UNIT_SHIM := build/unit/shim.o
UNIT_SANITIZE = $(shell echo 'int main(void){return 0;}' | $(CC) \
	-fsanitize=address,undefined -x c - -o build/unit/.probe 2>/dev/null && \
	echo -fsanitize=address,undefined -fno-sanitize-recover=undefined)
# No CPPFLAGS of the server's: _FORTIFY_SOURCE needs optimisation.
UNIT_FLAGS = -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
	-fno-strict-aliasing -fwrapv -fno-omit-frame-pointer -D_GNU_SOURCE \
	-DUSE_ASSERT_CHECKING=1 -Isrc -Itest/unit -isystem $(includedir_server) \
	-isystem $(includedir_internal) $(PROFILE)
# The server's own portability library: it is what printf() means there.
UNIT_LIBS = -L$(pkglibdir) -L$(libdir) -lpgcommon -lpgport -lm
first_lines = $(shell sed -n '1,8s,^/\* $(2): \(.*\) \*/$$,\1,p' $(1))
unit_links = $(wildcard $(patsubst %,src/%.c,$(patsubst %/,%/*,\
	$(call first_lines,$(1),links))))
unit_flags = $(call first_lines,$(1),flags)
unit_objects = $(if $(call unit_flags,$(1)),$(call unit_links,$(1)),\
	$(patsubst src/%.c,build/unit/src/%.o,$(call unit_links,$(1))))

ifneq ($(PGXS),)
unit: $(UNIT_PROGRAMS) ## the unit tests, without a server
	@if [ -z "$(UNIT_PROGRAMS)" ]; then \
		echo "no unit tests in test/unit" >&2; exit 1; fi
	PERL5LIB=script/lib prove --jobs 2 --merge --harness TapTally --exec '' \
		$(UNIT_PROGRAMS)

# What has changed since is known from what the compiler noted (-MMD).
UNIT_COMPILE = @mkdir -p $(@D) && $(CC) $(UNIT_FLAGS) $(UNIT_SANITIZE)

build/unit/src/%.o: src/%.c build/unit/flags
	$(UNIT_COMPILE) -MMD -MP -c -o $@ $<

$(UNIT_SHIM): test/unit/shim.c build/unit/flags
	$(UNIT_COMPILE) -MMD -MP -c -o $@ $<

.SECONDEXPANSION:
$(UNIT_PROGRAMS): build/%: test/%.c $(UNIT_SHIM) build/unit/flags \
		$$(call unit_objects,test/$$*.c) $(FMSORT_HEADERS) \
		$(wildcard test/unit/*.h) | have-libraries
	$(UNIT_COMPILE) $(call unit_flags,$<) -o $@ $< \
		$(call unit_objects,$<) $(UNIT_SHIM) $(SHLIB_LINK) $(UNIT_LIBS)

build/unit/flags: FORCE | build/unit have-libraries
	@echo '$(CC) $(UNIT_FLAGS) $(UNIT_SANITIZE)' | cmp -s - $@ || \
		echo '$(CC) $(UNIT_FLAGS) $(UNIT_SANITIZE)' >$@

-include $(wildcard build/unit/*.d build/unit/src/*/*.d build/unit/src/*/*/*.d)

.PHONY: unit
endif

# ---- what the tests put between fmsort and the kernel -----------------------

FAULT_FLAGS = -std=gnu11 -O1 -Wall -Wextra -Werror

build/faulty_io.so build/jumping_clock.so: build/%.so: test/faults/%.c Makefile \
		| build have-libraries
	$(CC) $(FAULT_FLAGS) -fPIC -shared -o $@ $< \
		$(shell pkg-config --cflags --libs liburing) -ldl

build/reaper build/refuse: build/%: test/faults/%.c Makefile | build
	$(CC) $(FAULT_FLAGS) -o $@ $<

# The library with plans that this one does not know.
build/fmsort_other.so: src/executor/plan.c $(OBJS) Makefile | build
	$(CC) $(CFLAGS) $(filter-out -MMD -MP,$(CPPFLAGS)) -fPIC \
		-DFMS_PLAN_VERSION=1000 -c -o build/plan_other.o $<
	$(CC) -shared -o $@ build/plan_other.o $(filter-out src/executor/plan.o,$(OBJS)) \
		$(LDFLAGS) $(SHLIB_LINK)

# Another extension, for test/t/031_neighbour.pl.
build/neighbour.so: test/faults/neighbour.c Makefile | build
	$(CC) $(CFLAGS) $(filter-out -MMD -MP,$(CPPFLAGS)) -fPIC -shared \
		-o $@ $<

# The library with another field in its counters.
build/fmsort_counters.so: $(SOURCES) $(FMSORT_HEADERS) Makefile | build have-libraries
	rm -rf build/counters && cp -r src build/counters
	find build/counters -name '*.[od]' -delete
	sed -i 's/^\tCOUNTER(GROUPS,/\tCOUNTER(OTHER, NUMBER, SUM, NONE, NULL, NULL) \\\n&/' \
		build/counters/base/counters.h
	$(CC) $(CFLAGS) -O0 -Wno-error -Ibuild/counters \
		$(filter-out -MMD -MP -Isrc,$(CPPFLAGS)) -U_FORTIFY_SOURCE -fPIC \
		-shared -o $@ $(SOURCES:src/%=build/counters/%) $(LDFLAGS) $(SHLIB_LINK)

# ---- fuzz targets: test/fuzz/fuzz_*.c, built like unit tests ----------------

FUZZ_PROGRAMS = $(patsubst test/fuzz/%.c,build/fuzz/%,\
	$(wildcard test/fuzz/fuzz_*.c))
FUZZ_CC := $(or $(shell command -v clang),\
	$(lastword $(sort $(wildcard /usr/bin/clang-[0-9]*))))
# Headers of the server, which gcc is happy with, are not clang's business.
FUZZ_FLAGS = $(filter-out -Werror -O1,$(UNIT_FLAGS)) -O2 \
	-Wno-ignored-attributes \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined

ifneq ($(PGXS),)
fuzz-programs: $(FUZZ_PROGRAMS)

$(FUZZ_PROGRAMS): build/fuzz/%: test/fuzz/%.c $(SOURCES) \
		$(FMSORT_HEADERS) $(wildcard test/unit/shim.*) Makefile | build/fuzz have-libraries
	$(FUZZ_CC) $(FUZZ_FLAGS) -o $@ $< $(call unit_links,$<) \
		test/unit/shim.c $(SHLIB_LINK) $(UNIT_LIBS)

.PHONY: fuzz-programs
endif

# ---- everything else lives in script/ and test/bench ------------------------

demo: ## compare PostgreSQL's sort and fmsort, two minutes
	@script/demo

demo-shards: ## the same for a sort over several servers
	@script/demo-shards

test: ## build with assertions, install, run the tests
	@script/test

# make test-SUITE: one suite; script/test --list prints all.
test-%: FORCE
	@script/test $*

fuzz coverage: %: test-%

lint: ## check the sources without running them
	@script/lint

dist: ## PGXN's archive, in build/dist
	@script/dist

deb: ## Debian packages, in build/deb
	@script/deb

rpm: ## an RPM package, in build/rpm
	@script/rpm

charts: ## draw the charts of docs/benchmarks from its CSV files
	@script/setup charts
	@/usr/bin/python3 script/charts.py docs/benchmarks

bench: bench-merge-phase ## measure the merge of each mode at equal memory

BENCH_merge-phase = merge-phase
BENCH_tuplesort = tuplesort/run
BENCH_papers = papers/run
BENCH_calibrate = calibrate/agree
BENCH_auto = devices/auto
BENCH_zoo = devices/zoo
BENCH_stripes = devices/stripes
BENCH_progress = progress/watch
BENCH_stat = stat/paired
BENCH_cancel = cancel/moments
BENCH_paired = tuplesort/paired
BENCH_small = small/sorts
BENCH_pgbench = small/pgbench
BENCH_temp-space = temp-space
BENCH_rewrites = rewrites
BENCH_shards = shards/run
BENCH_less = less
BENCH_parallel = parallel
BENCH_tpch = tpch/plans

bench-tuplesort: ## whole queries beside PostgreSQL's sort, an hour or two
bench-zoo: ## the same on slowed devices, as root, half an hour
bench-stripes: ## two temporary tablespaces on slow devices beside one, as root
bench-auto: ## automatic settings beside the best of a grid, 20 minutes
bench-papers: ## the papers' experiments, hours
bench-calibrate: ## fmsort_calibrate() beside fio
bench-progress: ## the estimates of fmsort_progress, a minute
bench-stat: ## what statistics cost, two minutes
bench-cancel: ## how long a cancelled sort goes on, an hour
bench-paired: ## an older fmsort (OLD=COMMIT) beside this one, an hour
bench-small: ## processor time of sorts from 3 to 1.5 million rows, 20 minutes
bench-pgbench: ## processor time of small sorts under pgbench, 10 minutes
bench-shards: ## shards beside PostgreSQL's Merge Append, 10 minutes
bench-temp-space: ## temporary space beside PostgreSQL's sort, a minute
bench-rewrites: ## CREATE TABLE AS, REFRESH and pg_repack in order, 5 minutes
bench-parallel: ## parallel sorts beside one process and PostgreSQL's, an hour
bench-less: ## sorts that do less than sort everything, half an hour
bench-tpch: ## TPC-H's queries whose plans fmsort.parallel changes, 10 minutes

bench-%: FORCE
	@test/bench/$(or $(BENCH_$*),$(error there is no benchmark '$*'))

bench-papers-quick: ## the same with less data, 10 minutes
	@QUICK=1 test/bench/papers/run

calibrate-report: ## draw a device's profile, in build/calibrate.svg
	@test/bench/calibrate/report

clean: ## remove what was built here
distclean: ## and build/, with its servers and environments

# The lines of this file that have a "##".
COMMANDS = sed -nE 's/^([a-z-]+):[^\#]*\#\# (.*)/\1 \2/p' Makefile | \
	while read -r name about; do \
	printf '%-19s %s\n' "$$name" "$$about"; done

help:
	@$(COMMANDS) | grep -v '^bench-'
	@printf '%-19s %s\n' \
		test-SUITE "one suite of tests: 'make help-test' names them" \
		bench-NAME "one benchmark: 'make help-bench' names them"

help-test:
	@script/test --list

help-bench:
	@$(COMMANDS) | grep '^bench-'

clean-build:
	rm -rf build

build build/unit build/fuzz build/regress:
	@mkdir -p $@

have-libraries:
	@pkg-config --exists $(LIBRARIES) || { echo "fmsort needs $(LIBRARIES)," \
		"which pkg-config does not find: 'script/setup build' installs" \
		"them (Debian: apt-get install pkg-config liburing-dev" \
		"liblz4-dev)." >&2; exit 1; }

FORCE:

.PHONY: demo demo-shards test fuzz coverage lint dist deb rpm charts bench calibrate-report help \
	help-test help-bench \
	bench-papers-quick clean-build have-libraries FORCE
