# The fuzz target of stepwise-mcp is a program with sanitizers. test/fuzz/lib.sh builds it in a
# folder outside the tree: make -f test/fuzz/frame.mk PG_CONFIG=...

here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
PG_CONFIG ?= pg_config
pg = $(shell $(PG_CONFIG) --$(1))

fuzz_frame: $(addprefix $(here),fuzz_frame.c $(addprefix ../../src/bin/,mcp_batch.c mcp_cure.c mcp_frame.c mcp_json.c mcp_log.c mcp_message.c mcp.h))
	$(call pg,cc) -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -Wall -Wextra -Werror -Wno-unused-parameter \
		-Wno-missing-field-initializers -Wno-sign-compare -D_GNU_SOURCE -DMAX_LINE=300 -DMAX_DEPTH=6 -I$(here)../../src \
		-isystem $(call pg,includedir-server) -isystem $(call pg,includedir) $(filter %.c,$^) \
		-L$(call pg,pkglibdir) -L$(call pg,libdir) -lpq -lpgcommon -lpgport -o $@
