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

# The collector has a fifth of the processor time of these programs with GOGC=100.
step vet
GOGC=400 go vet ./...

step staticcheck
GOGC=400 go tool staticcheck ./...

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

# TestEverySystem checks the types on each system of a release. Of these systems' own code, only
# the assembly of arm64 can fail later.
step cross-compile
if [ -z "${FULL:-}" ]; then
	GOOS=darwin GOARCH=arm64 go build ./models/bert
else
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
	short=-short # fewer repetitions, which have run without the detector
	if [ -n "${FULL:-}" ]; then
		packages='./tools/... ./indexer/... ./retriever/... ./internal/...' short=
	fi
	CGO_ENABLED=1 go test -race $short -vet=off $packages
fi

printf "== done\n"
