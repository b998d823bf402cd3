package cairn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/base/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func Example() {
	ctx := context.Background()
	folder, err := cairn.Open(ctx, "examples/handbook", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()
	if _, err := folder.Index(ctx, nil); err != nil {
		log.Fatal(err)
	}
	answer, err := folder.Search(ctx, cairn.Query{Text: "rotate a token", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range answer.Results {
		fmt.Println(r.Place())
	}
	// Output: access/rotate-a-token.md#planned-rotation
}

func ExampleFolder_Read() {
	ctx := context.Background()
	folder, err := cairn.Open(ctx, "examples/handbook", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()
	reading, err := folder.Read(ctx, "access/rotate-a-token.md#planned-rotation")
	if err != nil {
		log.Fatal(err)
	}
	heading, _, _ := strings.Cut(reading.Content, "\n")
	fmt.Println(heading)
	// Output: ## Planned rotation
}

func ExampleFolder_Suggest() {
	ctx := context.Background()
	folder, err := cairn.Open(ctx, "examples/handbook", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()
	_, err = folder.AddTools(ctx, "files", strings.NewReader(`[
		{"name": "read_csv", "description": "Read a CSV file", "inputSchema": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}, "outputSchema": {"type": "object", "properties": {"rows": {"type": "array"}}}},
		{"name": "draw_chart", "description": "Draw a chart of rows", "inputSchema": {"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array"}}}}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	plan, err := folder.Suggest(ctx, "read the CSV file sales.csv and draw a chart of its rows")
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range plan.Steps {
		fmt.Println(s.ID, s.Tool, s.DependsOn)
	}
	// Output:
	// task_0 files:read_csv []
	// task_1 files:draw_chart [task_0]
}

// TestFolder uses one folder as two programs do.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("# Oak\n\nThe oak is a tree.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *cairn.Folder {
		f, err := cairn.Open(t.Context(), dir, &cairn.Options{Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if a, err := second.Search(t.Context(), cairn.Query{Text: "oak"}); err != nil || a.Reason != "not_indexed" {
		t.Errorf("without an index: %+v, %v", a, err)
	}
	phases := 0
	report, err := first.Index(t.Context(), func(string, int, int) { phases++ })
	if err != nil || report.Files != 1 || report.Added != 1 || report.Pending != 0 || phases == 0 {
		t.Errorf("Index: %+v, %v, %d calls of progress", report, err, phases)
	}
	if a, err := second.Search(t.Context(), cairn.Query{Text: "oak", Filter: cairn.Filter{PathPrefix: "b"}}); err != nil || len(a.Results) > 0 {
		t.Errorf("with a filter that excludes everything: %+v, %v", a, err)
	}
	if a, err := second.Search(t.Context(), cairn.Query{Text: "oak"}); err != nil || len(a.Results) != 1 || a.Results[0].Place() != "a.md#oak" {
		t.Errorf("Search: %+v, %v", a, err)
	}
	if p, err := first.Suggest(t.Context(), "fell the tree"); err != nil || len(p.Steps) > 0 {
		t.Errorf("Suggest without tools: %+v, %v", p, err)
	}
	const tool = `[{"name": "copy_file", "description": "Copy a file"}]`
	if n, err := first.AddTools(t.Context(), "", strings.NewReader(tool)); err == nil || n != 0 {
		t.Errorf("AddTools without a source: %d, %v, want 0 and an error", n, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := second.AddTools(t.Context(), "files", strings.NewReader(tool)); err == nil || n != 0 {
		t.Errorf("AddTools of a closed folder: %d, %v, want 0 and an error", n, err)
	}
	if n, err := first.AddTools(t.Context(), "files", nil); err == nil || n != 0 {
		t.Errorf("AddTools without definitions: %d, %v, want 0 and an error", n, err)
	}
}

// TestErrorsOfPrograms: errors name neither flags nor commands, which a program does not have.
func TestErrorsOfPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"CAIRN_WORKSPACE", "CUE_WORKSPACE"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	t.Chdir(dir)
	if err := os.WriteFile("a.md", []byte("# Oak\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{"missing": "does not exist", "a.md": "is not a folder", ".": "is your home folder", "": "dir is empty"} {
		_, err := cairn.Open(t.Context(), folder, nil)
		if err == nil || !strings.Contains(err.Error(), want) || folder != "" && strings.Contains(err.Error(), "-C") {
			t.Errorf("Open(%q): %v, want an error that has %q and no flag", folder, err, want)
		}
	}
	if err := os.Mkdir("docs", 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := cairn.Open(t.Context(), "docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(t.Context(), "a.md"); !errors.Is(err, cairn.ErrNoIndex) || strings.Contains(err.Error(), "cairn index") {
		t.Errorf("Read without an index: %v, want %v", err, cairn.ErrNoIndex)
	}
}

// TestOtherModule compiles a program of another module that uses the exported types.
func TestOtherModule(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	required := strings.Replace(string(mod), "module cairn\n", "module example.com/program\n", 1)
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": required + "\nrequire cairn v0.0.0\n\nreplace cairn => " + root + "\n",
		"go.sum": string(sum),
		"main.go": `package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cairn"
	"cairn/retriever"
)

func main() {
	folder, err := cairn.Open(context.Background(), ".", &cairn.Options{Name: "program"})
	if err != nil {
		panic(err)
	}
	defer folder.Close()
	q := cairn.Query{Text: os.Args[1], Mode: retriever.Keyword, Filter: cairn.Filter{PathPrefix: "docs/"}}
	answer, err := folder.Search(context.Background(), q)
	if invalid, ok := errors.AsType[*retriever.InvalidError](err); ok {
		panic(invalid.Reason)
	}
	for _, r := range answer.Results {
		fmt.Println(r.Place(), r.LineRange.Start, r.Score)
	}
	var plan *cairn.Plan
	if plan, err = folder.Suggest(context.Background(), q.Text); err == nil {
		for _, s := range plan.Steps {
			fmt.Println(s.Tool, s.DependsOn)
		}
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "vet", "-mod=mod", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
