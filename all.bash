#!/usr/bin/env bash
# Runs every check that a change must pass. CI runs the same file. FAST=1 omits the race
# detector. FULL=1 runs it on all packages and compiles for every system of a release.
set -euo pipefail
cd "$(dirname "$0")"

group=$(ps -o pgid= -p $$ | tr -d ' ')

# waiting: prints the packages that this script is compiling or testing.
waiting() {
	ps -eo pgid=,args= | sed -nE "s#^ *$group [^ ]*/compile .* -p ([^ ]+) .*#compiling \1#p; s#^ *$group [^ ]*/([^/ ]+)\.test( .*)?\$#testing \1#p" | sort -u | head -4 | paste -sd, -
}

# step NAME: prints the name of a step, and every 30 s its running time and its packages.
step() {
	[ -z "${ticker:-}" ] || kill "$ticker" 2>/dev/null || true
	printf '== %s\n' "$*"
	(
		trap 'kill "$pause"; exit' TERM
		began=$SECONDS
		while :; do
			sleep 30 &
			pause=$!
			wait "$pause"
			printf '   … %s, %d s: %s\n' "$*" $((SECONDS - began)) "$(waiting)"
		done
	) 2>/dev/null &
	ticker=$!
}
trap 'kill "$ticker" 2>/dev/null' EXIT

step gofmt
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'run gofmt -w on:\n%s\n' "$unformatted"
	exit 1
fi

step go mod tidy
go mod tidy -diff

step vet
go vet ./...

step staticcheck
go tool staticcheck ./...

step no cgo
# Releases are built without cgo, so only packages of Go itself may use it; these also work
# without. The other steps compile with the default settings, because a second set of build
# results costs minutes.
wanted=$(CGO_ENABLED=1 go list -deps -f '{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}' ./cmd/cairn)
if [ -n "$wanted" ]; then
	printf 'needs a C compiler:\n%s\n' "$wanted"
	exit 1
fi

step drift
go run ./cmd/cairn drift

if [ -z "${FULL:-}" ]; then
	# Only the packages that differ between systems: half a minute for each system, where
	# all packages take minutes.
	step cross-compile packages that depend on the system
	tagged=$(go list -f '{{if or .IgnoredGoFiles .IgnoredOtherFiles}}{{.ImportPath}}{{end}}' ./internal/... ./models/... ./tools/...)
	GOOS=windows GOARCH=amd64 go build $tagged
	GOOS=darwin GOARCH=arm64 go build $tagged
else
	step cross-compile
	for system in linux darwin windows; do
		for arch in amd64 arm64; do
			GOOS=$system GOARCH=$arch go build -o /dev/null ./cmd/cairn
		done
	done
fi

# Tests are compiled without vet, which has checked them above.
step test
go test -vet=off ./...

# The race detector needs a C compiler. It slows the numeric packages down by a factor of
# ten, and these share no state between goroutines that the listed packages do not exercise.
# The tests of the commands run them as separate processes.
if [ -z "${FAST:-}" ] && command -v "$(go env CC)" >/dev/null; then
	step test -race
	packages='./indexer ./retriever ./internal/store/kv ./internal/store/docs ./internal/store/flat ./internal/base/owner ./internal/folder/index ./internal/toolbox ./internal/toolbox/usage ./internal/text/watch ./internal/stage ./internal/task/cards ./internal/toolbox/toolsearch'
	[ -z "${FULL:-}" ] || packages='./tools/... ./indexer/... ./retriever/... ./internal/...'
	CGO_ENABLED=1 go test -race -vet=off $packages
fi

step done
