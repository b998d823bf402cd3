#!/usr/bin/env bash
# Runs the official MCP conformance suite against cairn's HTTP server with the
# suite's fixtures (main.go), for both revisions on one URL, and ends with the
# suite's own verdict: every scenario that a revision requires has to pass.
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

work=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ -z "$server" ] || wait "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

go build -o "$work/conformance" ./benchmarks/conformance
cp -r examples/handbook "$work/handbook"
"$work/conformance" "$work/handbook" >"$work/url" 2>"$work/log" &
server=$!
url=
for _ in $(seq 600); do
	url=$(cat "$work/url")
	[ -n "$url" ] && break
	kill -0 "$server" 2>/dev/null || { cat "$work/log"; exit 1; }
	sleep .1
done
[ -n "$url" ] || { cat "$work/log"; exit 1; }

failed=0
for revision in 2026-07-28 2025-11-25; do
	printf '== conformance %s\n' "$revision"
	code=0
	(cd "$work" && "$node" "$main" server --url "${url/127.0.0.1/localhost}/mcp" --requirements "$revision") >"$work/out" 2>&1 || code=$?
	sed -n '/SUMMARY/,$p' "$work/out"
	[ "$code" = 0 ] || { grep -E 'FAIL|✗' "$work/out" | head -40 || true; failed=1; }
	printf 'conformance %s: the suite exits with %d\n' "$revision" "$code"
	[ -z "${KEEP:-}" ] || cp "$work/out" "$KEEP-$revision.txt"
done
exit "$failed"
