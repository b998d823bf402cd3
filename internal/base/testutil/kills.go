package testutil

import (
	"os"
	"strconv"
	"testing"
)

// Kills is how many processes a test kills at random moments: CAIRN_KILLS, or few if it is
// not set, and a tenth of few in a short run.
func Kills(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("CAIRN_KILLS")
	if text == "" && testing.Short() {
		return max(1, few/10)
	}
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
