#!/usr/bin/env bash
# Runs every check that a change has to pass. CI runs the same file.
# FAST=1 leaves out the race detector, FULL=1 runs it over everything and
# compiles for every system that releases are made for.
set -euo pipefail
cd "$(dirname "$0")"

# step names what runs, and says every half a minute that it still does.
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
			printf '   … %s, %d s\n' "$*" $((SECONDS - began))
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
# Everything here compiles as go run does: each other way costs minutes. Releases are built
# without cgo, so no package may want it but those of Go itself, which have both ways.
wanted=$(CGO_ENABLED=1 go list -deps -f '{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}' ./cmd/cairn)
if [ -n "$wanted" ]; then
	printf 'needs a C compiler:\n%s\n' "$wanted"
	exit 1
fi

if [ -z "${FULL:-}" ]; then
	# Only what differs between systems, for each of the others and for another
	# processor: half a minute of work each, where the whole takes minutes.
	step cross-compile what depends on the system
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

step test
go test ./...

# The race detector needs a C compiler. It costs a factor of ten in the numeric
# packages, which share no state between goroutines beyond what the others
# exercise; the commands are tested as processes of their own.
if [ -z "${FAST:-}" ] && command -v "$(go env CC)" >/dev/null; then
	step test -race
	packages='./indexer ./retriever ./internal/kv ./internal/store/docs ./internal/store/flat ./internal/owner ./internal/index ./internal/toolbox ./internal/usage ./internal/watch ./internal/stage ./internal/task/cards ./internal/toolsearch'
	[ -z "${FULL:-}" ] || packages='./tools/... ./indexer/... ./retriever/... ./internal/...'
	CGO_ENABLED=1 go test -race $packages
fi

step done
