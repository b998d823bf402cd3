#!/usr/bin/env bash
# Runs every check that a change has to pass. CI runs the same file.
# FAST=1 leaves out the race detector.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '== %s\n' "$*"; }

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

step build without cgo
CGO_ENABLED=0 go build -o /dev/null ./cmd/cairn

step cross-compile
for system in linux darwin windows; do
	for arch in amd64 arm64; do
		CGO_ENABLED=0 GOOS=$system GOARCH=$arch go build -o /dev/null ./cmd/cairn
	done
done

step test
CGO_ENABLED=0 go test ./...

# The race detector needs a C compiler. It costs a factor of ten in the numeric
# packages, which share no state between goroutines beyond what the others
# exercise; the commands are tested as processes of their own.
if [ -z "${FAST:-}" ] && command -v "$(go env CC)" >/dev/null; then
	step test -race
	go test -race ./tools/... ./indexer/... ./retriever/... ./internal/...
fi

step done
