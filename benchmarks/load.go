package benchmarks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// LoadOptions configures Load.
type LoadOptions struct {
	// URL is the URL of the server, such as "http://127.0.0.1:7420", with /w/NAME for a
	// workspace other than its first.
	URL string
	// Token is sent with every request unless it is empty.
	Token string
	// Queries holds the queries, which are sent in turn and repeatedly.
	Queries []string
	// Requests is the number of searches; 0 means one for each query.
	Requests int
	// Clients is the number of concurrent clients, each with its own connection.
	Clients int
	// Rate is the number of searches started per second, whether or not earlier ones have
	// been answered (an open loop). 0 means that each client sends the next search after
	// an answer (a closed loop), which measures the capacity of the server.
	Rate float64
	// Mode and Limit are those of the searches; "" and 0 mean the server's defaults.
	Mode  string
	Limit int
}

// LoadReport is the result of Load. Times are in milliseconds. In an open loop they begin
// when a search was due, not when a client could send it, so that they include the delays of
// an overloaded server (coordinated omission).
type LoadReport struct {
	Requests  int     `json:"requests"`
	Distinct  int     `json:"distinct_queries"`
	Clients   int     `json:"clients"`
	Rate      float64 `json:"rate,omitempty"` // LoadOptions.Rate
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"searches_per_second"`
	Errors    int     `json:"errors"`
	Empty     int     `json:"empty_answers"`
	Degraded  int     `json:"degraded_answers"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Longest   float64 `json:"longest_ms"`
	// FirstError is the text of the first error.
	FirstError string `json:"first_error,omitempty"`
}

// Load sends searches to a server over HTTP and measures its answers.
func Load(ctx context.Context, o LoadOptions) (*LoadReport, error) {
	if len(o.Queries) == 0 {
		return nil, errors.New("no queries")
	}
	o.Requests = cmp.Or(o.Requests, len(o.Queries))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Clients, MaxConnsPerHost: o.Clients}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	// Check that the server answers.
	if _, err := o.search(ctx, client, o.Queries[0]); err != nil {
		return nil, err
	}
	r := &LoadReport{Requests: o.Requests, Distinct: min(len(o.Queries), o.Requests), Clients: o.Clients, Rate: o.Rate}
	var mu sync.Mutex
	var times []float64
	var next atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for range o.Clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(o.Requests) && ctx.Err() == nil; i = next.Add(1) - 1 {
				due := time.Now()
				if o.Rate > 0 {
					due = began.Add(time.Duration(float64(i) / o.Rate * float64(time.Second)))
				}
				if wait := time.Until(due); wait > 0 {
					select {
					case <-time.After(wait):
					case <-ctx.Done():
						return
					}
				}
				a, err := o.search(ctx, client, o.Queries[i%int64(len(o.Queries))])
				took := time.Since(due)
				mu.Lock()
				times = append(times, float64(took)/float64(time.Millisecond))
				switch {
				case err != nil:
					if r.Errors++; r.FirstError == "" {
						r.FirstError = err.Error()
					}
				case len(a.Results) == 0:
					r.Empty++
				case len(a.Degraded) > 0:
					r.Degraded++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Seconds = time.Since(began).Seconds()
	r.PerSecond = float64(len(times)-r.Errors) / r.Seconds
	slices.Sort(times)
	r.P50, r.P95, r.P99, r.Longest = Percentile(times, 50), Percentile(times, 95), Percentile(times, 99), times[len(times)-1]
	return r, nil
}

// foundAnswer has the fields of an answer that are measured.
type foundAnswer struct {
	Results  []struct{} `json:"results"`
	Degraded []string   `json:"degraded"`
}

// search sends one search with the mode and the limit of the options.
func (o *LoadOptions) search(ctx context.Context, client *http.Client, query string) (*foundAnswer, error) {
	values := url.Values{"q": {query}}
	if o.Mode != "" {
		values.Set("mode", o.Mode)
	}
	if o.Limit > 0 {
		values.Set("limit", fmt.Sprint(o.Limit))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL+"/api/search?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+o.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; start a server with `cairn serve`", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s: %.200s", resp.Status, body)
	}
	var a foundAnswer
	return &a, json.Unmarshal(body, &a)
}

// SampleQueries returns n different queries: sequences of three to eight words in lines of
// the Markdown files below dir, chosen at random with seed.
func SampleQueries(dir string, n int, seed uint64) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != dir:
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(path, ".md"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]bool{}
	var queries []string
	for tries := 0; len(queries) < n; tries++ {
		if len(files) == 0 || tries > 100*n {
			return nil, fmt.Errorf("%d different queries in the .md files below %s, want %d", len(queries), dir, n)
		}
		text, err := os.ReadFile(files[r.IntN(len(files))])
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		words := strings.FieldsFunc(lines[r.IntN(len(lines))], func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
		if len(words) < 3 {
			continue
		}
		if want := 3 + r.IntN(6); len(words) > want {
			at := r.IntN(len(words) - want + 1)
			words = words[at : at+want]
		}
		q := strings.Join(words, " ")
		if q = q[:min(len(q), 150)]; !seen[q] {
			seen[q] = true
			queries = append(queries, strings.ToValidUTF8(q, ""))
		}
	}
	return queries, nil
}
