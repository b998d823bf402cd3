#!/usr/bin/env bash
# Prints the licence of everything that a cairn binary contains, as what hands
# it on has to: Go's, those of the modules on each system that releases are made
# for, and that of the embedding model.
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
show 'cl100k_base, from tiktoken-go-loader' "$(go list -m -f '{{.Dir}}' github.com/pkoukk/tiktoken-go-loader)/LICENSE"

modules=$(for system in linux darwin windows; do
	GOOS=$system go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/cairn
done | sort -u)
shopt -s nullglob nocaseglob
while read -r path version dir; do
	files=("$dir"/licen[sc]e* "$dir"/copying* "$dir"/notice* "$dir"/patents*)
	# Some say it in their README alone.
	[ ${#files[@]} -gt 0 ] || files=("$dir"/readme*)
	[ ${#files[@]} -gt 0 ] || { echo "licences: $path $version has neither a licence nor a README; look at it" >&2 && exit 1; }
	show "$path $version" "${files[@]}"
done <<<"$modules"
