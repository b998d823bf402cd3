package models

import (
	"crypto/sha256"
	"strings"
	"testing"
)

func TestWithID(t *testing.T) {
	weights, tokenizer := sha256.Sum256([]byte("weights")), sha256.Sum256([]byte("tokenizer"))
	base := Description{Name: "m", Dimension: 384, MaxTokens: 256, Pooling: "mean", MinSimilarity: .3}
	id := base.WithID(weights, tokenizer).ID
	if !strings.HasPrefix(id, "m@") || len(id) != len("m@")+12 {
		t.Errorf("ID = %q, want m@ and 12 hex digits", id)
	}
	// Computed with sha256sum over the same seven lines.
	if want := "m@562591074aa3"; id != want {
		t.Errorf("ID = %q, want %q", id, want)
	}
	if got := base.WithID(weights, tokenizer); got.Name != base.Name || got.Dimension != base.Dimension {
		t.Errorf("WithID changed more than the ID: %+v", got)
	}
	same := base
	same.MinSimilarity = .5
	if got := same.WithID(weights, tokenizer).ID; got != id {
		t.Errorf("ID = %q with another MinSimilarity, want %q", got, id)
	}
	for name, change := range map[string]func(*Description){
		"dimension": func(d *Description) { d.Dimension = 768 }, "max_tokens": func(d *Description) { d.MaxTokens = 512 },
		"pooling": func(d *Description) { d.Pooling = "cls" }, "query_prefix": func(d *Description) { d.QueryPrefix = "q: " },
		"document_prefix": func(d *Description) { d.DocumentPrefix = "q: " },
	} {
		d := base
		change(&d)
		if got := d.WithID(weights, tokenizer).ID; got == id {
			t.Errorf("ID is still %q with another %s", got, name)
		}
	}
	if got := base.WithID(tokenizer, weights).ID; got == id {
		t.Errorf("ID is still %q with weights and tokenizer exchanged", got)
	}
}
