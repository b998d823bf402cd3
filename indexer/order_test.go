package indexer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/walk"
)

// embedOrder records the texts in the order in which a fixture embeds them.
func (f *fixture) embedOrder() *[]string {
	var texts []string
	f.embedder.Before = func(batch []string) error {
		texts = append(texts, batch...)
		return nil
	}
	return &texts
}

// TestOrderOfVectors: the files that a search waited for come first, and test code last.
func TestOrderOfVectors(t *testing.T) {
	f := newFixture(t, t.TempDir(), &Options{Walk: &walk.Options{Extensions: []string{".go"}}})
	f.write("a/a_test.go", "package a\n\nfunc TestApple() { pear() }\n")
	f.write("a/b.go", "package a\n\nfunc plum() {}\n")
	f.write("c/d.go", "package c\n\nfunc quince() {}\n")
	if p := f.preferences.add([]string{"quinc"}, store.Filter{}); p == nil {
		t.Fatal("the request was refused")
	}
	texts := f.embedOrder()
	f.run()
	var got []string
	for _, text := range *texts {
		for _, name := range []string{"apple", "plum", "quince"} {
			if strings.Contains(text, name) {
				got = append(got, name)
			}
		}
	}
	if want := []string{"quince", "plum", "apple"}; !slices.Equal(got, want) {
		t.Errorf("embedded %v, want %v", got, want)
	}
}

// TestAnotherBranch: a change of the branch embeds only the symbols that differ, and a
// change back embeds none.
func TestAnotherBranch(t *testing.T) {
	f := newFixture(t, t.TempDir(), &Options{Walk: &walk.Options{Extensions: []string{".go"}}})
	checkout := func(changed string) {
		for i := range 20 {
			name := fmt.Sprintf("p/f%d.go", i)
			body := "return other(n)"
			if i < 3 {
				body = changed
			}
			f.write(name, fmt.Sprintf("package p\n\nfunc first%d(n int) int {\n\treturn n\n}\n\nfunc second%d(n int) int {\n\t%s\n}\n", i, i, body))
		}
	}
	for _, step := range []struct {
		changed  string
		embedded int
	}{
		{"return other(n)", 60}, // the head of a file and two functions
		{"return\n\n\tentirely.Different(n)", 3},
		{"return other(n)", 0},
		{"return\n\n\tentirely.Different(n)", 0},
	} {
		checkout(step.changed)
		if r := f.run(); r.Embedded != step.embedded {
			t.Errorf("with %q: %v, want %d texts embedded", step.changed, r, step.embedded)
		}
	}
}
