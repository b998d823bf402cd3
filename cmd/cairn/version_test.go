package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestVersionNamesItsCommit(t *testing.T) {
	defer func(was string) { commit = was }(commit)
	commit = "0123456789abcdef0123456789abcdef01234567"
	for args, want := range map[string]string{"version": " (commit 0123456789ab, ", "version --json": `"commit":"0123456789ab"`} {
		var out, notes bytes.Buffer
		if code := run(strings.Fields(args), strings.NewReader(""), &out, &notes); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("cairn %s: %d, %q and %q, want %q", args, code, &out, &notes, want)
		}
	}
}
