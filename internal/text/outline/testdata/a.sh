#!/bin/bash
# Prints help.
usage() {
	cat <<END
inner() {
END
	if [ "$1" ]; then { echo; }; fi
}

function build-all {
	nested() { echo; }
}
name=value
