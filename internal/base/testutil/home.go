package testutil

import (
	"os"
	"testing"

	"cairn/internal/base/home"
)

// Main runs the tests of a package with their own CAIRN_HOME, for TestMain.
func Main(m *testing.M) { os.Exit(Homed{m}.Run()) }

// Homed is a testing.M whose tests have their own CAIRN_HOME. Processes that the tests start
// share it.
type Homed struct{ *testing.M }

// inherited is the variable that holds the CAIRN_HOME which a test gave to this process.
const inherited = "CAIRN_TEST_HOME"

// Run implements testscript.TestingM.
func (m Homed) Run() int {
	if dir := os.Getenv(home.Variable); dir != "" && dir == os.Getenv(inherited) {
		return m.M.Run()
	}
	dir, err := os.MkdirTemp("", "cairn-home")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv(home.Variable, dir)
	os.Setenv(inherited, dir)
	return m.M.Run()
}

// Place returns the private directories of a folder.
func Place(t testing.TB, root string) home.Place {
	t.Helper()
	p, err := home.Of(root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
