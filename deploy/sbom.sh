#!/usr/bin/env bash
# Prints a software bill of materials of the binary in CycloneDX 1.5 (JSON): the modules in
# cmd/cairn and the embedding model.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --always)}
model=$(sha256sum models/minilm/model.onnx | cut -d' ' -f1)
go list -deps -f '{{with .Module}}{{if not .Main}}{{with or .Replace .}}{{.Path}} {{.Version}}{{end}}{{end}}{{end}}' ./cmd/cairn | sort -u |
	awk -v version="$version" -v model="$model" '
	BEGIN {
		printf "{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.5\",\"version\":1,\n"
		printf "\"metadata\":{\"component\":{\"type\":\"application\",\"name\":\"cairn\",\"version\":\"%s\"}},\n\"components\":[\n", version
		printf "{\"type\":\"machine-learning-model\",\"name\":\"all-MiniLM-L6-v2\",\"hashes\":[{\"alg\":\"SHA-256\",\"content\":\"%s\"}]}", model
	}
	NF == 2 { printf ",\n{\"type\":\"library\",\"name\":\"%s\",\"version\":\"%s\",\"purl\":\"pkg:golang/%s@%s\"}", $1, $2, $1, $2 }
	END { print "\n]}" }'
