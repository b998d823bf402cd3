#!/usr/bin/env bash
# Builds the release binary of HEAD twice, from clones in different folders, and fails if the
# binaries differ.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for clone in one two/deeper; do
	git clone -q --no-hardlinks . "$work/$clone"
	(cd "$work/$clone" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=reproduced" -o cairn ./cmd/cairn)
done
sha256sum "$work/one/cairn" "$work/two/deeper/cairn" | sed "s|$work/||"
cmp "$work/one/cairn" "$work/two/deeper/cairn"
