#!/bin/sh
# Prepares a folder to build and run cairn on ONNX Runtime: libtokenizers.a for
# the linker and libonnxruntime.so for the running program. README.md says how
# to use it. Needs Go, cargo, Python with pip, and a C compiler.
# Usage: models/onnx/ort.sh FOLDER
set -eu
runtime=${ONNXRUNTIME_VERSION:-1.31.1} # any from 1.26 has the C interface that is asked for
mkdir -p "${1:?usage: $0 FOLDER}"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# The tokenizers library: the crate inside the Go module, alone, with its one
# git dependency taken from the registry and without its benchmarks.
go mod download github.com/daulet/tokenizers
cp -R "$(go list -m -f '{{.Dir}}' github.com/daulet/tokenizers)/crates/tokenizers" "$work/crate"
chmod -R u+w "$work/crate"
sed -i.orig -e 's/^tiktoken-rs = .*/tiktoken-rs = "0.7"/' -e '/^\[dev-dependencies\]/,$d' "$work/crate/Cargo.toml"
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work/target}
export CARGO_TARGET_DIR
(cd "$work/crate" && cargo build --release)
cp "$CARGO_TARGET_DIR/release/libtokenizers_ffi.a" "$out/libtokenizers.a"

# The runtime: the shared library inside the Python wheel.
python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$work" "onnxruntime==$runtime"
python3 -m zipfile -e "$work"/onnxruntime-*.whl "$work/wheel"
case $(uname -s) in
Darwin) cp "$work"/wheel/onnxruntime/capi/libonnxruntime.*dylib "$out/libonnxruntime.dylib" ;;
*) cp "$work"/wheel/onnxruntime/capi/libonnxruntime.so.* "$out/libonnxruntime.so" ;;
esac
ls -l "$out"
