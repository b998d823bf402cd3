package cards

import (
	"context"
	"fmt"
	"testing"

	"cairn/internal/task/files"
)

func many(b *testing.B, n int, o *files.Options) *Store {
	cards := make(map[string]string, n)
	for i := range n {
		deps := ""
		if i > 10 {
			deps = fmt.Sprintf("depends_on: [t%05d, t%05d]\n", i/2, i/3)
		}
		cards[fmt.Sprintf("t%05d", i)] = card(fmt.Sprintf("Task number %d", i), fmt.Sprintf("status: todo\npriority: high\ntags: [a, b]\n%screated: 2026-01-02T10:43:%02dZ\n", deps, i%60))
	}
	s, _ := board(b, o, cards)
	return s
}

func BenchmarkList10k(b *testing.B) {
	s := many(b, 10_000, nil)
	if _, err := s.Board(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if list, _, err := s.List(ListRequest{Status: "todo"}); err != nil || len(list) != 10_000 {
			b.Fatal(len(list), err)
		}
	}
}

func BenchmarkCold10k(b *testing.B) {
	s := many(b, 10_000, nil)
	for b.Loop() {
		cold := New(s.files, nil)
		if _, err := cold.Board(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate10k(b *testing.B) {
	s := many(b, 10_000, &files.Options{})
	s.Board()
	words := []string{"todo", "active"}
	for i := 0; b.Loop(); i++ {
		if _, err := s.Update(context.Background(), update("t00042", `{"status":"`+words[(i+1)%2]+`"}`)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreate10k(b *testing.B) {
	s := many(b, 10_000, &files.Options{})
	var deps []string
	for i := range 10 {
		deps = append(deps, fmt.Sprintf("t%05d", i))
	}
	for b.Loop() {
		if _, err := s.Create(context.Background(), CreateRequest{Title: "x", DependsOn: deps}); err != nil {
			b.Fatal(err)
		}
	}
}
