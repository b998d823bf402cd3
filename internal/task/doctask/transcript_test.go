package doctask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

var today = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, dir string, o *Options, fo *files.Options) *Docs {
	t.Helper()
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	if o == nil {
		o = &Options{}
	}
	o.Now = func() time.Time { return today }
	return New(files.New(tree, fo), o)
}

func write(t testing.TB, dir, name, content string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("request %s: %v", text, err)
	}
	return v
}

func answer(a any, err error) string {
	if e, ok := errors.AsType[*task.Error](err); ok {
		a = map[string]any{"success": false, "error": e.Message, "code": e.Code, "context": e.Data}
	} else if err != nil {
		return err.Error()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(a); err != nil {
		return err.Error()
	}
	return b.String()
}

// call runs one call of a transcript: the tool and its request, or cat and a
// file of the workspace.
func call(t testing.TB, d *Docs, dir, text string) string {
	t.Helper()
	name, req, _ := strings.Cut(strings.TrimSpace(text), " ")
	ctx := context.Background()
	switch name {
	case "cat":
		b, err := os.ReadFile(filepath.Join(dir, req))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), "\r", "<CR>")
	case "view_task":
		return answer(d.ViewTask(ctx, decode[ViewTaskRequest](t, req)))
	case "start_task":
		return answer(d.StartTask(ctx, decode[StartTaskRequest](t, req)))
	case "complete_task":
		return answer(d.CompleteTask(ctx, decode[CompleteTaskRequest](t, req)))
	case "task":
		return answer(d.Task(ctx, decode[TaskRequest](t, req)))
	case "view_section":
		return answer(d.ViewSection(ctx, decode[ViewSectionRequest](t, req)))
	case "section":
		return answer(d.Section(ctx, decode[SectionRequest](t, req)))
	case "browse_documents":
		return answer(d.Browse(ctx, decode[BrowseRequest](t, req)))
	case "search_documents":
		return answer(d.SearchDocuments(ctx, decode[SearchRequest](t, req)))
	}
	t.Fatalf("unknown call %q", name)
	return ""
}

// TestTranscripts runs testdata/*.txtar: files of a workspace, whose names begin with a slash,
// and calls, each followed by its expected answer.
func TestTranscripts(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.txtar")
	if len(names) == 0 {
		t.Fatal("no transcripts")
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var d *Docs
			for i := 0; i < len(ar.Files); i++ {
				f := ar.Files[i]
				if strings.HasPrefix(f.Name, "/") {
					write(t, dir, f.Name, strings.ReplaceAll(string(f.Data), "<CR>", "\r"))
					continue
				}
				if d == nil {
					d = open(t, dir, nil, nil)
				}
				got := redact(call(t, d, dir, string(f.Data)))
				if *update {
					if i+1 == len(ar.Files) || ar.Files[i+1].Name != "want" {
						ar.Files = append(ar.Files[:i+1], append([]txtar.File{{Name: "want"}}, ar.Files[i+1:]...)...)
					}
					ar.Files[i+1].Data = []byte(got)
				}
				i++
				if i == len(ar.Files) || ar.Files[i].Name != "want" {
					t.Fatalf("%s: call %q has no answer", name, f.Data)
				}
				if diff := cmp.Diff(string(ar.Files[i].Data), got); diff != "" {
					t.Errorf("%s: %s(-want +got):\n%s", name, f.Data, diff)
				}
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// redact removes the parts of an answer that differ between runs.
func redact(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if key, _, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && (key == `"hash"` || key == `"mtime"`) {
			line = line[:strings.Index(line, ": ")] + ": ...\n"
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}
