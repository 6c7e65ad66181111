# pg_stepwise: built, installed and checked like every PGXS extension.
# "make help" lists what there is beside that.

EXTENSION = pg_stepwise
MODULE_big = pg_stepwise

# The version is written once, in the control file.  (PGXS has a VERSION of its own.)
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(EXTENSION).control)

SQL_PARTS = $(sort $(wildcard sql/[0-9][0-9]_*.sql))
JOINED_SQL = $(EXTENSION)--$(EXTVERSION).sql

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*/*.c)))
DATA = $(wildcard sql/$(EXTENSION)--*--*.sql)
DATA_built = $(JOINED_SQL)
EXTRA_CLEAN = build

# Behaviour, in reading order. The answers are in expected/.
REGRESS = \
	define \
	circle \
	create \
	tree \
	fork \
	history \
	shape \
	state \
	audit \
	tenant \
	resolve \
	condition \
	branch \
	between \
	held \
	next \
	loop \
	blocked \
	progress \
	review \
	modify \
	context \
	artifact \
	skill \
	tool \
	runner \
	pause \
	resource \
	record \
	variables \
	handoff \
	agree \
	walk \
	altered \
	emptied \
	raw_values \
	chain \
	encoding \
	merge \
	reason

# Races: what two sessions may do to each other. The answers are in expected/ too,
# so no spec may have the name of a test above.
ISOLATION = \
	workflow \
	finish \
	raw \
	lock_order \
	claim \
	lease \
	submit \
	decision \
	key \
	tenant_lock \
	run \
	continue \
	resume_once \
	resume_parallel \
	nested_agents \
	rewritten \
	readers \
	reclaim \
	chain_order \
	key_many

REGRESS_OPTS = --inputdir=test --load-extension=$(EXTENSION)
# PGXS would put the results into output_iso/, and version 15 look for the answers there.
ISOLATION_OPTS = --inputdir=test --outputdir=. --load-extension=$(EXTENSION)

# "make STRICT=1" is how the tests build: every warning is an error, and assertions are on.
# The server's headers are read as system headers: they are not clean under -Wextra, ours are.
# Unused parameters stay allowed: PostgreSQL dictates the signatures of hooks, callbacks
# and SQL-callable functions. Fields that a static initializer leaves out are zero, and meant to be.
# Mixed signs are compared all over the idioms of the server (lengthof).
PG_CPPFLAGS = -I$(srcdir)/src -DSTEPWISE_VERSION='"$(EXTVERSION)"'
ifdef STRICT
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING=1 -isystem $(includedir_server)
PG_CFLAGS = -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers -Wno-sign-compare
endif

PG_CONFIG ?= pg_config

# These bring what they need with them, PostgreSQL included: no PGXS for them.
OWN_GOALS = help demo test ack calls format typedefs psql bench fuzz fresh matrix

.PHONY: all $(OWN_GOALS)
all:

ifneq ($(filter-out $(OWN_GOALS),$(or $(MAKECMDGOALS),all)),)
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifneq ($(wildcard $(PGXS)),)
include $(PGXS)
else ifeq ($(MAKECMDGOALS),clean)
clean:
	rm -rf $(EXTRA_CLEAN) $(DATA_built) $(MODULE_big).so $(OBJS) $(OBJS:.o=.bc)
else
$(error "$(PG_CONFIG) --pgxs" leads nowhere: install PostgreSQL's server development files, or name another PG_CONFIG)
endif
endif

# Each floor has one header, which the floors above include: a changed header rebuilds all.
# So does the control file, since the compiler gets the version from it.
$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*/*.h) $(EXTENSION).control

# The folders are named so that a removed file counts as a change.
$(MODULE_big)$(DLSUFFIX): $(wildcard src/*/)

# "sql" itself is named so that a removed part counts as a change.
$(JOINED_SQL): $(SQL_PARTS) sql $(EXTENSION).control
	{ printf '%s\n' '\echo Use "CREATE EXTENSION $(EXTENSION)" to load this file. \quit'; cat $(SQL_PARTS); } > $@

# --- what tries the extension out, each on a private throwaway cluster -------

export PG_CONFIG REGRESS ISOLATION TESTS KEEP KINDS ROOTS

help: ## list what make can do
	@echo 'make, make install, make installcheck, make clean: as in every PGXS extension,'
	@echo 'against the server of PG_CONFIG=... (default: pg_config in the path). Beside that:'
	@sed -n 's/^\([a-z]*\):.* ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16
	@echo 'TESTS="state audit" runs only these tests; KEEP=1 leaves the run'"'"'s folder for a look.'

demo: ## show the main job, told for a person
	@test/demo

test: ## run all suites; the last line is the sum
	@test/run

calls: ## print which file of src/ calls which, from the objects of the last make test
	@test/floors --calls

ack: ## accept the answers of the last failing run into expected/
	@test/ack

format: ## lay out the C sources, with pgindent or clang-format
	@test/format

typedefs: ## write typedefs.list anew, which make format reads
	@test/format --typedefs

psql: ## open psql on a throwaway cluster that has the extension
	@test/psql

bench: ## measure against handwritten PL/pgSQL
	@$(run_if_there)

fuzz: ## feed the parsers with random input, for longer than make test does
	@$(run_if_there)

fresh: ## as root: demo and test on new Debian machines, which debootstrap makes
	@test/fresh

matrix: ## the same with other Debians, for PostgreSQL 17 and 18
	@test/fresh $(or $(SUITES),trixie forky)

run_if_there = if [ -x test/$@/run ]; then test/$@/run; else echo "make $@: there is no test/$@/run" >&2; exit 1; fi
