# shellcheck shell=bash
#
# What the tests of MCP use: Node with the official clients. test/run includes this. The tests that need what cannot be had are
# skipped, and say so.

MCP_FOLDER=$REPO/build/mcp			# it is kept, so that the network is used once
MCP_PACKAGES=(@modelcontextprotocol/sdk@1.32 @modelcontextprotocol/client@2.4 @modelcontextprotocol/ext-tasks@0.2 pg@8)

# Set and export MCP_NODE to a Node that the server's user can run and that has the clients, or to nothing.
bring_clients()
{
	command -v npm >/dev/null || want nodejs npm
	[ -e "$MCP_FOLDER/complete" ] || npm_install_clients
	MCP_NODE=
	if [ -e "$MCP_FOLDER/complete" ]; then
		cp -r "$MCP_FOLDER/node_modules" "$RUN/work"
		MCP_NODE=$(first_that_runs 'require("@modelcontextprotocol/client")' -e node /usr/bin/node)
	fi
	export MCP_NODE
}

npm_install_clients()
{
	mkdir -p "$MCP_FOLDER" 2>/dev/null || return 0
	if patiently output_to "$RUN/log/npm_mcp.log" timeout -k 5 300 npm install --prefix "$MCP_FOLDER" \
		--no-audit --no-fund --fetch-retries=1 "${MCP_PACKAGES[@]}"; then
		: >"$MCP_FOLDER/complete"
	else
		say "SKIPPED: npm could not install the official clients of MCP; build/log has its log"
	fi
}
