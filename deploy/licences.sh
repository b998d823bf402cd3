#!/usr/bin/env bash
# Prints the licences of all parts of a cairn binary, which a distributor must pass on: those of
# Go, of the modules on each system of a release, and of the embedding model.
set -euo pipefail
cd "$(dirname "$0")/.."

show() { # TITLE FILE...
	printf '\n======== %s\n' "$1"
	shift
	for file; do
		printf -- '-------- %s\n' "${file##*/}"
		cat "$file"
		echo
	done
}

echo 'cairn is licensed under Apache-2.0, see LICENSE. It contains the following works of others.'
show 'Go, its standard library and runtime' "$(go env GOROOT)/LICENSE"
show 'all-MiniLM-L6-v2' models/minilm/LICENSE
show 'Temml, which draws formulas on the pages' internal/face/web/assets/temml.LICENSE
show 'cl100k_base, from tiktoken-go-loader' "$(go list -m -f '{{.Dir}}' github.com/pkoukk/tiktoken-go-loader)/LICENSE"

modules=$(for system in linux darwin windows; do
	GOOS=$system go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/cairn
done | sort -u)
shopt -s nullglob nocaseglob
while read -r path version dir; do
	files=("$dir"/licen[sc]e* "$dir"/copying* "$dir"/notice* "$dir"/patents*)
	# Some modules state their licence only in the README.
	[ ${#files[@]} -gt 0 ] || files=("$dir"/readme*)
	[ ${#files[@]} -gt 0 ] || { echo "licences: $path $version has neither a licence nor a README; look at it" >&2 && exit 1; }
	show "$path $version" "${files[@]}"
done <<<"$modules"
