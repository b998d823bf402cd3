package keyword

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"cairn/internal/store"
)

// TestMain runs crashWriter instead of the tests in the process that
// TestCrash starts.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CAIRN_TEXT_CRASH"); dir != "" {
		crashWriter(dir)
	}
	os.Exit(m.Run())
}

// crashEntries is batch n: 50 chunks, each replacing that of the batch before.
func crashEntries(n int) []store.KeywordEntry {
	var entries []store.KeywordEntry
	for i := range 50 {
		entries = append(entries, entry(fmt.Sprint("chunk", i), fmt.Sprintf("batch%d common words", n)))
	}
	return entries
}

// crashWriter updates the index in an endless loop, and prints a number after each update.
func crashWriter(dir string) {
	x, err := Open(dir, nil)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for n := 0; ; n++ {
		if err := x.Update(ctx, crashEntries(n), nil); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// startWriter runs crashWriter in a separate process, and returns its output.
func startWriter(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "CAIRN_TEXT_CRASH="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// TestCrash kills a writer at random moments: what had returned is there, what
// had not is there or not, and nothing else.
func TestCrash(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 6 {
		dir := t.TempDir()
		cmd, lines := startWriter(t, dir)
		last := -1
		for stop := r.IntN(12); last < stop && lines.Scan(); {
			n, err := strconv.Atoi(lines.Text())
			if last = n; err != nil {
				t.Fatalf("writer: %s", lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // its last output before the kill
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				last = n
			}
		}
		cmd.Wait() // killed: the error is the point

		x, err := Open(dir, nil)
		if err != nil {
			t.Fatalf("after batch %d: %v", last, err)
		}
		if n, err := x.Count(); n != 50 || err != nil {
			t.Errorf("after batch %d: Count() = %d, %v, want 50", last, n, err)
		}
		returned := len(search(t, x, fmt.Sprint("batch", last), 100, store.Filter{}))
		next := len(search(t, x, fmt.Sprint("batch", last+1), 100, store.Filter{}))
		if returned+next != 50 || returned != 0 && next != 0 {
			t.Errorf("after batch %d: %d of its chunks and %d of the next, want all of one", last, returned, next)
		}
		update(t, x, crashEntries(1000))
		if n := len(search(t, x, "batch1000", 100, store.Filter{})); n != 50 {
			t.Errorf("after batch %d: the next update left %d chunks, want 50", last, n)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
