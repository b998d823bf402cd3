package models

import "testing"

func TestWithID(t *testing.T) {
	base := Description{Name: "m", Dimension: 384, MaxTokens: 256, Pooling: "mean", MinSimilarity: .3}
	id := base.WithID("abc").ID
	// printf 'abc\n"m"\n384\n256\n"mean"\n""\n""\n0.3' | sha256sum | cut -c1-12
	if want := "m@d65774254ec0"; id != want {
		t.Errorf("ID = %q, want %q", id, want)
	}
	if got := base.WithID("abc").WithID("abc").ID; got != id {
		t.Errorf("ID = %q when it is set twice, want %q", got, id)
	}
	if got := base.WithID("abd").ID; got == id {
		t.Errorf("ID is still %q with other files", got)
	}
	for name, change := range map[string]func(*Description){
		"name": func(d *Description) { d.Name = "n" }, "dimension": func(d *Description) { d.Dimension = 768 },
		"max_tokens": func(d *Description) { d.MaxTokens = 512 }, "pooling": func(d *Description) { d.Pooling = "cls" },
		"query_prefix": func(d *Description) { d.QueryPrefix = "q: " }, "document_prefix": func(d *Description) { d.DocumentPrefix = "q: " },
		"min_similarity": func(d *Description) { d.MinSimilarity = .5 },
	} {
		d := base
		change(&d)
		if got := d.WithID("abc").ID; got[len(got)-12:] == id[len(id)-12:] {
			t.Errorf("ID is still %q with another %s", got, name)
		}
	}
}
