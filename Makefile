# pg_stepwise is built, installed and checked like every PGXS extension.
# "make help" lists the additional targets.

EXTENSION = pg_stepwise
MODULE_big = pg_stepwise

# The version is written once, in the control file.  (PGXS has a VERSION of its own.)
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(EXTENSION).control)

SQL_PARTS = $(sort $(wildcard sql/[0-9][0-9]_*.sql))
JOINED_SQL = $(EXTENSION)--$(EXTVERSION).sql

# src/bin has programs, which are no part of the module.
OBJS = $(patsubst %.c,%.o,$(sort $(filter-out src/bin/%,$(wildcard src/*/*.c))))
MCP = stepwise-mcp
MCP_OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/bin/*.c)))
DATA = $(wildcard sql/$(EXTENSION)--*--*.sql)
DATA_built = $(JOINED_SQL)
EXTRA_CLEAN = build $(MCP) $(MCP_OBJS)

# Regression tests, in reading order. The expected answers are in expected/.
REGRESS = \
	define \
	circle \
	warn \
	create \
	builder \
	tree \
	fork \
	history \
	shape \
	state \
	audit \
	entries \
	tenant \
	slot \
	resolve \
	condition \
	default \
	branch \
	between \
	join \
	held \
	next \
	loop \
	order \
	readylist \
	stop \
	report \
	blocked \
	progress \
	fence \
	late_worker \
	review \
	rights \
	gate \
	gate_doors \
	gate_found \
	gate_below \
	added \
	held_above \
	modify \
	update \
	context \
	find \
	artifact \
	versions \
	skill \
	tool \
	runner \
	look \
	run_ended \
	pause \
	resource \
	run_tools \
	record \
	matched \
	doors \
	variables \
	handoff \
	by_name \
	defaults \
	planned \
	sent \
	mistyped \
	help \
	mcp \
	mcp_tools \
	mcp_lists \
	mcp_bounds \
	mcp_resources \
	mcp_prompts \
	mcp_ask \
	mcp_tasks \
	hints \
	agree \
	complete \
	claim_found \
	walk \
	walked \
	altered \
	emptied \
	place \
	raw_values \
	chain \
	encoding \
	merge \
	reason \
	bounded \
	escaped

# Isolation tests of concurrent sessions. Their expected answers are in expected/ too,
# so a spec may not have the name of a test above.
ISOLATION = \
	workflow \
	finish \
	raw \
	lock_order \
	queue \
	log_rows \
	claim \
	lease \
	submit \
	decision \
	gate_race \
	key \
	tenant_lock \
	remembered \
	shrunk \
	reinstalled \
	new_index \
	run \
	continue \
	resume_once \
	resume_parallel \
	nested_agents \
	rewritten \
	readers \
	reclaim \
	late_claim \
	run_tools_claim \
	update_claim \
	store_twice \
	chain_order \
	mcp_cancel \
	key_many

REGRESS_OPTS = --inputdir=test --load-extension=$(EXTENSION)
# By default PGXS writes the results to output_iso/, and PostgreSQL 15 looks for the expected answers there.
ISOLATION_OPTS = --inputdir=test --outputdir=. --load-extension=$(EXTENSION)

# The tests build with "make STRICT=1": every warning is an error, and assertions are enabled.
# The server's headers are included as system headers, since they give warnings under -Wextra.
# Unused parameters are allowed, since PostgreSQL defines the signatures of hooks, callbacks
# and SQL-callable functions. So are missing fields in static initializers, which are zero on
# purpose, and comparisons of mixed signs, which idioms of the server such as lengthof need.
PG_CPPFLAGS = -I$(srcdir)/src -DSTEPWISE_VERSION='"$(EXTVERSION)"'
ifdef STRICT
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING=1 -isystem $(includedir_server)
PG_CFLAGS = -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers -Wno-sign-compare
endif

# Calls between our own files are bound when the library is linked. Otherwise each connection that
# loads it looks up hundreds of names.
ifeq ($(shell uname -s),Linux)
SHLIB_LINK = -Wl,-Bsymbolic-functions
endif

PG_CONFIG ?= pg_config

# These targets find or install PostgreSQL themselves, so they work without PGXS.
OWN_GOALS = help demo test ack cost calls format typedefs psql mcp-demo mcp-config bench fuzz walk fresh matrix

.PHONY: all $(OWN_GOALS)
all:

ifneq ($(filter-out $(OWN_GOALS),$(or $(MAKECMDGOALS),all)),)
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifneq ($(wildcard $(PGXS)),)
# The program stepwise-mcp needs libpq and the library with PostgreSQL's JSON parser. PGXS installs
# what SCRIPTS_built names beside psql; its own PROGRAM cannot stand beside MODULE_big.
MCP_NEEDS := $(wildcard $(shell $(PG_CONFIG) --includedir)/libpq-fe.h)
MCP_NEEDS += $(firstword $(wildcard $(addsuffix /libpgcommon.a,$(shell $(PG_CONFIG) --pkglibdir) $(shell $(PG_CONFIG) --libdir))))
ifeq ($(words $(MCP_NEEDS)),2)
SCRIPTS_built = $(MCP)
else
$(info $(MCP) is not built: libpq-fe.h or libpgcommon.a of this PostgreSQL is missing)
endif
include $(PGXS)
ifndef STRICT
# Compiled like this, the files use each other's small functions in place: a step takes three per
# cent fewer instructions. A compiler that cannot link so does without.
LINKED_WHOLE = -O3 -flto=auto -fno-semantic-interposition
override CFLAGS += $(shell echo 'int main(void) { return 0; }' | $(CC) $(LINKED_WHOLE) -x c -o /dev/null - 2>/dev/null && echo $(LINKED_WHOLE))
endif
else ifeq ($(MAKECMDGOALS),clean)
clean:
	rm -rf $(EXTRA_CLEAN) $(DATA_built) $(MODULE_big).so $(OBJS) $(OBJS:.o=.bc)
else
$(error "$(PG_CONFIG) --pgxs" leads nowhere: install PostgreSQL's server development files, or name another PG_CONFIG)
endif
endif

# The libraries are named here, since libpq_pgport does not name them in every version.
$(MCP): $(MCP_OBJS)
	$(CC) $(CFLAGS) $^ -L$(dir $(lastword $(MCP_NEEDS))) -lpgcommon -lpgport $(libpq) $(LDFLAGS) $(LDFLAGS_EX) -lm -o $@

# The headers of libpq are in a folder of their own.
$(MCP_OBJS): override CPPFLAGS += -I$(libpq_srcdir)
$(MCP_OBJS): $(wildcard src/bin/*.h) $(EXTENSION).control

# Each floor has one header, which the floors above include: a changed header rebuilds all.
# So does the control file, since the compiler gets the version from it.
$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*/*.h) $(EXTENSION).control

# The folders are prerequisites so that removing a file counts as a change.
$(MODULE_big)$(DLSUFFIX): $(wildcard src/*/)

# The folder "sql" is a prerequisite for the same reason.
$(JOINED_SQL): $(SQL_PARTS) sql $(EXTENSION).control
	{ printf '%s\n' '\echo Use "CREATE EXTENSION $(EXTENSION)" to load this file. \quit'; cat $(SQL_PARTS); } > $@

# --- targets that run the extension, each on its own temporary cluster -------

export PG_CONFIG REGRESS ISOLATION TESTS KEEP KINDS ROOTS SEEDS PLANS CHECKS

help: ## list the targets
	@echo 'make, make install, make installcheck, make clean: as in every PGXS extension,'
	@echo 'against the server of PG_CONFIG=... (default: pg_config in the path). In addition:'
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
	@echo 'TESTS="state audit" runs only these tests; KEEP=1 keeps the folder of the run.'

demo: ## show what the extension does, step by step
	@test/demo

test: ## run all suites; the last line is the sum
	@test/run

cost: ## take the numbers anew with which make test compares the cost of a call
	@test/cost

calls: ## print which file of src/ calls which, from the objects of the last make test
	@test/floors --calls

ack: ## accept the answers of the last failing run into expected/
	@test/ack

format: ## lay out the C sources, with pgindent or clang-format
	@test/format

typedefs: ## write typedefs.list anew, which make format reads
	@test/format --typedefs

psql: ## open psql on a temporary cluster that has the extension
	@test/psql

mcp-demo: ## start a temporary cluster, and print how an agent connects to it
	@test/mcp/demo

mcp-config: ## print how an agent connects to the database that PGHOST, PGDATABASE, ... name
	@test/mcp/config

bench: ## measure against handwritten PL/pgSQL; QUICK=1 takes two to three minutes, FULL=1 hours
	@$(run_if_there)

fuzz: ## feed random input to the parsers, for longer than make test does
	@$(run_if_there)

walk: ## take random walks through plans, with the seeds SEEDS="1 2 3" (0 to 1000000)
	@test/walk

fresh: ## as root: run demo and test on new Debian systems that debootstrap makes
	@test/fresh

matrix: ## the same on other Debian releases, for PostgreSQL 17 and 18
	@test/fresh $(or $(SUITES),trixie forky)

run_if_there = if [ -x test/$@/run ]; then test/$@/run; else echo "make $@: there is no test/$@/run" >&2; exit 1; fi
