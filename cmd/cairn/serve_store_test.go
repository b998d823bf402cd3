//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store/qdrant/qdranttest"
)

// TestServeFromAStore runs two servers without files on one store while a writer
// watches the files. All give the same answers, also to misspelt words, and both
// servers see a change within two seconds. The servers write no files.
func TestServeFromAStore(t *testing.T) {
	store := qdranttest.New(t, nil)
	address := "qdrant://" + store.Addr() + "/docs"
	book := t.TempDir()
	if err := os.CopyFS(book, handbook()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary(t), "index", "-C", book, "--store", address).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var servers []*serving
	var homes []string
	for range 2 {
		home := t.TempDir()
		homes = append(homes, home)
		servers = append(servers, startServe(t, "-C", home, "--no-index", "--no-rate-limit", "--store", address))
	}
	writer := startServe(t, "-C", book, "--watch", "--no-rate-limit", "--store", address)

	// places are those of the results, in order.
	places := func(s *serving, query string) (found []string) {
		status, body := get(t, s.url+"/api/search?"+query)
		var a struct {
			Mode    string
			Results []struct{ Path, Anchor, Hash string }
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK {
			t.Fatalf("GET %s: %d %s", query, status, body)
		}
		found = append(found, a.Mode)
		for _, r := range a.Results {
			found = append(found, r.Path+"#"+r.Anchor+" "+r.Hash)
		}
		return found
	}
	all := append(slices.Clone(servers), writer)
	for _, query := range []string{"q=rotate+a+token", "q=backup&mode=keyword", "q=who+is+on+call", "q=limits&mode=semantic", "q=tokne&mode=keyword", "q=rotaet+secrte+gatewya"} {
		want := places(writer, query)
		if len(want) < 2 {
			t.Errorf("%s finds nothing: %v", query, want)
		}
		for i, s := range servers {
			if got := places(s, query); !slices.Equal(got, want) {
				t.Errorf("%s: server %d answers %v, the writer %v", query, i, got, want)
			}
		}
	}
	for i, s := range all {
		if status, body := get(t, s.url+"/readyz"); status != http.StatusOK {
			t.Errorf("process %d is not ready: %d %s", i, status, body)
		}
		if _, got := get(t, s.url+"/api/read?path=access/rotate-a-token.md"); !strings.Contains(got, `"content"`) {
			t.Errorf("process %d reads %.200s", i, got)
		}
	}

	if err := os.WriteFile(filepath.Join(book, "zoo.md"), []byte("# Zoo\n\nThe quagga is extinct.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The owner process stores the words that correct queries after the documents.
	for _, query := range []string{"q=quagga&mode=keyword", "q=quaga&mode=keyword"} {
		for i, s := range all {
			testutil.Await(t, func() string {
				found := places(s, query)
				if strings.Contains(strings.Join(found, " "), "zoo.md") {
					return ""
				}
				return fmt.Sprintf("process %d answers %s with %v, want the new document", i, query, found)
			})
		}
	}

	store.Stop()
	if status, body := get(t, servers[0].url+"/api/search?q=quagga"); status != http.StatusServiceUnavailable || !strings.Contains(body, "qdrant") {
		t.Errorf("a server without its store answers %d %s, want 503 and the reason", status, body)
	}
	if got := places(writer, "q=quagga"); len(got) < 2 || got[0] != "hybrid" {
		t.Errorf("the writer without its store: %v, want a whole answer from the folder's index", got)
	}
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	testutil.Await(t, func() string {
		if status, body := get(t, servers[0].url+"/api/search?q=quagga"); status != http.StatusOK {
			return fmt.Sprintf("after the return of its store a server answers %d %s", status, body)
		}
		return ""
	})
	for i, s := range all {
		if err := s.stop(t); err != nil {
			t.Errorf("process %d, after SIGTERM: %v\n%s", i, err, s.log)
		}
	}
	for i, home := range homes {
		if made, err := os.ReadDir(home); err != nil || len(made) > 0 {
			t.Errorf("server %d has made %v, %v, want nothing", i, made, err)
		}
	}
}
