#!/usr/bin/env bash
# Installs the official MCP conformance suite and runs it against cairn's HTTP server with the
# suite's fixtures (TestSuite), for both revisions on one URL. The verdict is the suite's own:
# every scenario that a revision requires has to pass.
#
#   benchmarks/conformance/run.sh [FOLDER]
#
# FOLDER keeps the suite and its Node.js (22 or later is needed) from run to run;
# it is made outside the repository. Without npm, or when npm cannot reach its
# registry, the script says so and ends with 0: REQUIRE=1 makes that an error.
set -euo pipefail
cd "$(dirname "$0")/../.."

suite=@modelcontextprotocol/conformance@0.2.0-alpha.12
node_version=22
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/cairn-conformance}

missing() {
	printf 'conformance: not run: %s\n' "$1"
	[ -z "${REQUIRE:-}" ] || exit 1
	exit 0
}

node=$dir/node_modules/node/bin/node
main=$dir/node_modules/@modelcontextprotocol/conformance/dist/index.js
if [ ! -x "$node" ] || [ ! -f "$main" ]; then
	command -v npm >/dev/null || missing 'there is no npm'
	mkdir -p "$dir"
	# The package node fetches its program in an install script, which npm 11 runs
	# only where it is allowed by name.
	[ -f "$dir/package.json" ] || printf '{"private":true,"allowScripts":{"node":true}}\n' >"$dir/package.json"
	timeout 300 npm --prefix "$dir" install --no-audit --no-fund "node@$node_version" "$suite" </dev/null >"$dir/npm.log" 2>&1 ||
		missing "npm could not install the suite, see $dir/npm.log"
	[ -x "$node" ] || missing "npm installed no Node.js, see $dir/npm.log"
fi

CAIRN_CONFORMANCE=$(cd "$dir" && pwd) go test -count=1 -v -run TestSuite ./benchmarks/conformance
