//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// largeImport is a document of nearly the largest size that is read, honest or not.
type largeImport struct {
	name string
	make func() string
}

const (
	listBytes    = 24<<20 - 1000
	openAPIBytes = 16<<20 - 4000
	yamlBytes    = 4<<20 - 1000
)

var largeImports = []largeImport{
	{"honest list of 190,000.json", func() string {
		return "[" + counted(190_000, ",", `{"name":"tool_%d","description":"Does thing %d with a file.","inputSchema":{"type":"object"}}`) + "]"
	}},
	{"honest tools.jsonl", func() string {
		return filled(listBytes, "\n", `{"server":"server","name":"tool_%d","description":"Does thing %d with a file, and says so at some length, as tools do.","inputSchema":{"type":"object","properties":{"path%d":{"type":"string","description":"The file's path"},"limit":{"type":"integer","description":"How many lines","default":10},"mode":{"type":"string","enum":["a","b"]}},"required":["path%d"]}}`)
	}},
	{"honest description.json", func() string { return openAPIOf(filledParts(openAPIBytes, honestPath, honestSchema)) }},
	{"honest description.yaml", func() string {
		return "openapi: 3.0.0\ninfo:\n  title: a\npaths:\n" + filled(yamlBytes, "", "  /things/%d:\n    get:\n      operationId: get%d\n      summary: Get thing %d\n      parameters:\n        - name: id\n          in: query\n          required: true\n          schema:\n            type: string\n      responses:\n        '200':\n          description: ok\n          content:\n            application/json:\n              schema:\n                type: object\n                properties:\n                  id:\n                    type: integer\n                  name:\n                    type: string\n")
	}},
	{"short names.json", func() string { return "[" + filled(listBytes, ",", `{"name":"%d"}`) + "]" }},
	{"parameters.jsonl", func() string {
		return filledWith(listBytes, "\n", func(i int) string {
			return fmt.Sprintf(`{"name":"t%d","inputSchema":{"properties":{%s}}}`, i, counted(400, ",", fmt.Sprintf(`"p%d_%%d":{}`, i)))
		})
	}},
	{"shared descriptions.jsonl", func() string {
		return filledWith(listBytes, "\n", func(i int) string {
			return fmt.Sprintf(`{"name":"t%d","inputSchema":{"$defs":{"a":{"description":"%s"}},"properties":{%s}}}`, i, strings.Repeat(fmt.Sprintf("d%d ", i), 180), counted(400, ",", `"p%d":{"$ref":"#/$defs/a"}`))
		})
	}},
	{"long names.jsonl", func() string {
		return filledWith(listBytes, "\n", func(i int) string {
			return fmt.Sprintf(`{"name":"t%d","inputSchema":{"properties":{"%s":{"properties":{%s}}}}}`, i, strings.Repeat("n", 200_000+i), counted(400, ",", `"p%d":{}`))
		})
	}},
	{"needs.json", func() string { return `[{"name":"t","depends_on":[` + filled(listBytes, ",", `""`) + `]}]` }},
	{"values.json", func() string {
		return `[{"name":"t","inputSchema":{"enum":[` + filled(listBytes, ",", `1`) + `]}}]`
	}},
	{"one description.json", func() string {
		return `[{"name":"t","description":"` + strings.Repeat("é", listBytes/2-40) + `"}]`
	}},
	{"operations on one schema.json", func() string { return oneSchema("") }},
	{"operations with a parameter on one schema.json", func() string { return oneSchema(`"parameters":[{"name":"own%d","in":"query"}],`) }},
	{"empty paths.json", func() string {
		return `{"openapi":"3.1.0","paths":{` + filled(openAPIBytes, ",", `"/%d":{}`) + `}}`
	}},
	{"members of references.json", func() string {
		return `{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":[{"$ref":"#/x/0"}]}}},"x":{` + filled(openAPIBytes, ",", `"%d":{}`) + `}}`
	}},
	{"references.json", func() string {
		return `{"openapi":"3.1.0","paths":{"/a":{"get":{}}},"x":[` + filled(openAPIBytes, ",", `{"$ref":"#/x/%d"}`) + `]}`
	}},
	{"deep references.json", func() string {
		return `{"openapi":"3.1.0","paths":{"/a":{"get":{}}},"x":` + strings.Repeat(`{"a":`, 5000) + `[` + filled(openAPIBytes-100_000, ",", `{"$ref":"#/x`+strings.Repeat("/a", 90)+`%d"}`) + `]` + strings.Repeat(`}`, 5000) + `}`
	}},
	{"request bodies.json", func() string {
		n := 30_000
		return `{"openapi":"3.1.0","paths":{` + counted(n, ",", `"/p%d":{"post":{"requestBody":{"$ref":"#/components/requestBodies/B%d"}}}`) + `},"components":{"schemas":{"S":{"properties":{` +
			counted(5000, ",", `"p%d":{"type":"string"}`) + `}}},"requestBodies":{` + counted(n, ",", `"B%d":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S"}}}}`) + `}}}`
	}},
	{"flow.yaml", func() string {
		return "openapi: 3.1.0\npaths: {/a: {get: {}}}\nx: [" + strings.Repeat("a,", yamlBytes/2-100) + "a]\n"
	}},
	{"dashes.yaml", func() string {
		return "openapi: 3.1.0\npaths: {/a: {get: {}}}\nx:\n" + strings.Repeat("- a\n", yamlBytes/4-20)
	}},
	{"keys.yaml", func() string {
		return "openapi: 3.1.0\npaths: {/a: {get: {}}}\nx:\n" + filled(yamlBytes-100, "", " k%d: v\n")
	}},
}

const (
	honestPath   = `"/things/%d/{id}":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],"get":{"operationId":"get%d","summary":"Get thing %d","description":"Returns a thing with all of its fields.","responses":{"200":{"description":"ok","content":{"application/json":{"schema":{"$ref":"#/components/schemas/S%d"}}}},"404":{"description":"not found"}}},"put":{"operationId":"put%d","requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S%d"}}}},"responses":{"204":{"description":"done"}}}}`
	honestSchema = `"S%d":{"type":"object","description":"Schema %d of a large API, with some text as they have.","properties":{"id":{"type":"integer","description":"its id"},"name":{"type":"string","maxLength":100,"example":"abc"},"parent":{"$ref":"#/components/schemas/S%d"},"tags":{"type":"array","items":{"type":"string"}}},"required":["id"]}`
)

// counted joins n copies of s, each with its number for every "%d".
func counted(n int, separator, s string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(s, "%d", strconv.Itoa(i))
	}
	return strings.Join(parts, separator)
}

// filled is counted as often as the size allows.
func filled(size int, separator, s string) string {
	return filledWith(size, separator, func(i int) string { return strings.ReplaceAll(s, "%d", strconv.Itoa(i)) })
}

func filledWith(size int, separator string, part func(int) string) string {
	var b strings.Builder
	for i := 0; ; i++ {
		s := part(i)
		if b.Len()+len(s)+200 > size {
			return b.String()
		}
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(s)
	}
}

func filledParts(size int, path, schema string) (paths, schemas string) {
	n := size / (len(path) + len(schema) + 60)
	return counted(n, ",", path), counted(n, ",", schema)
}

func openAPIOf(paths, schemas string) string {
	return `{"openapi":"3.0.0","info":{"title":"a","version":"1"},"paths":{` + paths + `},"components":{"schemas":{` + schemas + `}}}`
}

// oneSchema describes 3,000 operations whose body is one schema of 3,000 properties.
func oneSchema(parameters string) string {
	return openAPIOf(counted(3000, ",", `"/p%d":{"post":{`+parameters+`"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S"}}}}}}`),
		`"S":{"type":"object","properties":{`+counted(3000, ",", `"p%d":{"type":"string"}`)+`}}`)
}

// listing is an MCP server with pages of tools, over HTTP.
func listing(t *testing.T, pages []string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if json.NewDecoder(r.Body).Decode(&call) != nil || call.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}`
		if call.Method == "tools/list" {
			n, _ := strconv.Atoi(call.Params.Cursor) // "" is the first
			result = `{"tools":[` + pages[n] + `]`
			if n+1 < len(pages) {
				result += `,"nextCursor":"` + strconv.Itoa(n+1) + `"`
			}
			result += "}"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, result)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// livePages are tool lists of servers, of the largest size of a message.
var livePages = map[string]func() []string{
	"honest server": func() []string {
		page := filled(7<<20, ",", `{"name":"tool_%d","description":"Does thing %d with a file.","inputSchema":{"type":"object","properties":{"path%d":{"type":"string","description":"The file's path"},"limit":{"type":"integer","default":10}},"required":["path%d"]}}`)
		return []string{page, strings.ReplaceAll(page, `"name":"`, `"name":"b`), strings.ReplaceAll(page, `"name":"`, `"name":"c`)}
	},
	"server with values": func() []string {
		return []string{`{"name":"a","inputSchema":{"type":"object","x":[` + filled(7<<20, ",", "1") + `]}}`}
	},
	"server with schemas": func() []string {
		return []string{`{"name":"a","inputSchema":{"type":"object","x":[` + filled(7<<20, ",", "{}") + `]}}`}
	},
}

// TestLargeImports imports documents, and the tools of servers, of the largest size that
// is read, each in a process of its own, and logs the peak of its memory above that of
// an import of one tool. CAIRN_IMPORTS is a regular expression of the names.
func TestLargeImports(t *testing.T) {
	part := os.Getenv("CAIRN_IMPORTS")
	if part == "" {
		t.Skip("CAIRN_IMPORTS names no imports")
	}
	only := regexp.MustCompile(part)
	base, _, err := importCost(t, "", `[{"name":"a"}]`, "one.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, mib int, seconds float64, err error) {
		t.Logf("%-48s %5d MiB %6.1f s: %v", name, mib-base, seconds, err)
		if mib-base > 256 {
			t.Errorf("%s: %d MiB above %d, want at most 256 MiB", name, mib-base, base)
		}
	}
	for _, d := range largeImports {
		if only.MatchString(d.name) {
			mib, seconds, err := importCost(t, "", d.make(), d.name)
			check(d.name, mib, seconds, err)
		}
	}
	for name, pages := range livePages {
		if only.MatchString(name) {
			mib, seconds, err := importCost(t, listing(t, pages()), "", "")
			check(name, mib, seconds, err)
		}
	}
}

// importCost imports a URL, or a document in a file, and returns the peak of the memory
// and the processor time. The error is what the command said when it refused.
func importCost(t *testing.T, url, text, name string) (mib int, seconds float64, refused error) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"tools", "import", "--no-embed", "-C", dir, "--url", url}
	if url == "" {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args[:len(args)-2], file)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env = append(os.Environ(), "CAIRN_HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		refused = fmt.Errorf("%w: %.200s", err, lines[len(lines)-1])
	}
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return int(use.Maxrss >> 10), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), refused
}
