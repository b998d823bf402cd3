package encoder

import (
	"testing"

	"cairn/internal/folder/workspace"
)

// TestOneModelForAll checks that all workspaces of a process share one model, and
// that closing it in one does not close it for the others.
func TestOneModelForAll(t *testing.T) {
	var m Model
	var first, second workspace.Options
	if err := m.Apply(&first); err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(&second); err != nil {
		t.Fatal(err)
	}
	a, err := first.Model()
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.Model()
	if err != nil || a != b {
		t.Fatalf("two models, %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := b.EmbedQuery(t.Context(), "still there"); err != nil || len(v) != b.Description().Dimension {
		t.Errorf("after the other was closed: %d numbers, %v", len(v), err)
	}
}

func TestModelOfTools(t *testing.T) {
	var o workspace.Options
	if err := (&Model{}).Apply(&o); err != nil {
		t.Fatal(err)
	}
	e, err := o.ToolModel()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Description().ID, o.ToolDescription.ID; got != want || want == o.Description.ID {
		t.Errorf("the model of tools is %s, described as %s; that of documents is %s", got, want, o.Description.ID)
	}
	o = workspace.Options{}
	if err := (&Model{Engine: "hugot"}).Apply(&o); err != nil {
		t.Fatal(err)
	}
	if o.ToolModel != nil {
		t.Error("hugot has another model for tools")
	}
}
