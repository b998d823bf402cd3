#!/usr/bin/env bash
# usage: fetch.sh FOLDER
# Downloads the packages of packages.tsv with the clients of their registries, compares
# their checksums, and unpacks the files that questions.tsv and code.tsv ask about to
# FOLDER/documents and FOLDER/code.
set -euo pipefail
shopt -s globstar nullglob

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/packages"
out=$(cd "$1" && pwd)

# download CLIENT PACKAGE VERSION prints the path of the archive.
download() {
	local dir=$out/packages/$1-${2//\//-}-${3//[:\/]/-}
	if [ ! -d "$dir" ]; then
		rm -rf "$dir.part" && mkdir "$dir.part"
		(
			cd "$dir.part"
			case $1 in
			deb) apt-get download -q "$2=$3" ;;
			deb-src) apt-get source -q --download-only "$2=$3" && rm -f ./*.dsc ./*.debian.tar.* ./*.asc ;;
			go) cp "$(GOFLAGS=-mod=mod go mod download -json "$2@$3" | sed -n 's/.*"Zip": "\(.*\)",/\1/p')" . ;;
			npm) npm pack --silent "$2@$3" ;;
			pypi) pip download -q --no-deps --no-binary :all: "$2==$3" ;;
			esac
		) >&2
		mv "$dir.part" "$dir"
	fi
	echo "$dir"/*
}

# unpack ARCHIVE FOLDER leaves out the folder that holds everything in an archive of sources.
unpack() {
	case $1 in
	*.deb) dpkg-deb -x "$1" "$2" ;;
	*.tar.* | *.tgz) tar -xf "$1" -C "$2" --strip-components=1 ;;
	*.zip)
		unzip -q "$1" -d "$2.zip"
		cp -r "$(find "$2.zip" -type d -name '*@*' -print -quit)/." "$2"
		rm -rf "$2.zip"
		;;
	esac
}

rm -rf "$out/documents" "$out/code"
while IFS=$'\t' read -r folder client package version sum patterns; do
	[[ $folder == \#* ]] && continue
	archive=$(download "$client" "$package" "$version")
	got=$(sha256sum "$archive" | cut -d' ' -f1)
	if [ "$sum" != "$got" ]; then
		echo "$archive has the checksum $got, want $sum" >&2
		exit 1
	fi
	tree=$(mktemp -d)
	unpack "$archive" "$tree"
	name=${package%/v[0-9]*}
	to=$out/$folder/${name##*[/:]}
	mkdir -p "$to"
	(
		cd "$tree"
		eval "files=($patterns)" # with the braces and ** of the shell
		for file in "${files[@]}"; do
			[ ! -f "$file" ] || [ -L "$file" ] || cp --parents "$file" "$to"
		done
	)
	find "$to" -name '*.gz' -exec gunzip -qf {} +
	find "$to" -name '.*' -type f | while read -r hidden; do # as hidden files they would be left out
		base=${hidden##*/}
		mv "$hidden" "${hidden%/*}/${base#.}"
	done
	rm -rf "$tree"
	echo "${to#"$out"/}: $(find "$to" -type f | wc -l) files"
done <"$here/packages.tsv"
git init -q "$out/code"
