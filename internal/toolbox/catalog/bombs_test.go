package catalog

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// importBombs are documents that were, or could be, made to exhaust an import.
var importBombs = []struct{ name, text string }{
	{"allOf of itself", selfReferences("allOf", 300)},
	{"anyOf of itself", selfReferences("anyOf", 300)},
	{"oneOf of itself", selfReferences("oneOf", 300)},
	{"two schemas of each other", toolWith(`{"type":"object","$defs":{"a":{"anyOf":[` + repeat(`{"$ref":"#/$defs/b"}`, 100) + `]},"b":{"anyOf":[` + repeat(`{"$ref":"#/$defs/a"}`, 100) + `]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`)},
	{"a property of itself", toolWith(`{"type":"object","properties":{` + repeatf(`"p%d":{"$ref":"#"}`, 300) + `}}`)},
	{"properties and allOf of itself", toolWith(`{"type":"object","properties":{` + repeatf(`"p%d":{"$ref":"#"}`, 3000) + `},"allOf":[` + repeat(`{"$ref":"#"}`, 300) + `]}`)},
	{"a chain of references", toolWith(`{"type":"object","$defs":{` + repeatf(`"a%d":{"allOf":[{"$ref":"#/$defs/a1"},{"$ref":"#/$defs/a2"}]}`, 2000) + `},"allOf":[{"$ref":"#/$defs/a0"}]}`)},
	{"nested objects", toolWith(strings.Repeat(`{"type":"object","properties":{"a":`, 4000) + `{}` + strings.Repeat(`}}`, 4000))},
	{"nested arrays", toolWith(strings.Repeat(`{"items":`, 4000) + `{}` + strings.Repeat(`}`, 4000))},
	{"nested allOf", toolWith(strings.Repeat(`{"allOf":[`, 2500) + `{}` + strings.Repeat(`]}`, 2500))},
	{"many properties", toolWith(`{"type":"object","properties":{` + repeatf(`"p%d":{"type":"string"}`, 2500) + `}}`)},
	{"a long enumeration", toolWith(`{"type":"object","properties":{"a":{"enum":[` + repeatf(`"v%d"`, 40_000) + `]}}}`)},
	{"a long required", toolWith(`{"type":"object","required":[` + repeatf(`"v%d"`, 40_000) + `]}`)},
	{"patterns", toolWith(`{"type":"object","properties":{` + repeatf(`"p%d":{"type":"string","pattern":"(a{1,9}){1,9}(b{1,9}){1,9}"}`, 5000) + `}}`)},
	{"many tools", `[` + repeatf(`{"name":"t%d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, 20_000) + `]`},
	{"tools of one name", `[` + repeat(`{"name":"t"}`, 50_000) + `]`},
	{"needs", `[{"name":"t","depends_on":[` + repeatf(`"v%d"`, 50_000) + `]}]`},
	{"operations on one schema", operations(3000, 3000, false)},
	{"operations on one reference", operations(3000, 3000, true)},
	{"operations with many parameters", `{"openapi":"3.1.0","paths":{"/a":{"parameters":[` + repeatf(`{"name":"p%d","in":"query"}`, 5000) + `],"get":{},"put":{},"post":{},"delete":{},"patch":{},"head":{},"options":{},"trace":{}}}}`},
	{"components of each other", `{"openapi":"3.1.0","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/a0"}}}}}}},"components":{"schemas":{` + repeatf(`"a%d":{"anyOf":[{"$ref":"#/components/schemas/a1"},{"$ref":"#/components/schemas/a2"},{"$ref":"#/components/schemas/a3"}]}`, 3000) + `}}}`},
	{"references in a circle", `{"openapi":"3.1.0","paths":{"/a":{"$ref":"#/paths/~1b"},"/b":{"$ref":"#/paths/~1a"}}}`},
	{"YAML", "openapi: 3.1.0\npaths:\n" + repeatLines("  /a%d:\n    get:\n      summary: a\n", 10_000)},
	{"YAML aliases", "openapi: 3.1.0\nx0: &x0 [a,a,a,a,a,a,a,a,a,a]\n" + aliases(9) + "paths: {/a: {get: {}}}\n"},
	{"YAML brackets", "openapi: 3.1.0\nx: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\npaths: {/a: {get: {}}}\n"},
	{"YAML indentation", "openapi: 3.1.0\nx:\n" + indented(600) + "\npaths: {/a: {get: {}}}\n"},
	{"YAML keys", "openapi: 3.1.0\npaths: {/a: {get: {}}}\nx:\n" + repeatLines(" k%d: v\n", 20_000)},
	{"YAML documents", "openapi: 3.1.0\npaths: {/a: {get: {}}}\n" + strings.Repeat("---\n", 50_000)},
	{"YAML merges of themselves", "openapi: 3.1.0\npaths: {/a: {get: {}}}\nx: &x {<<: [*x, *x]}\n"},
	{"YAML in one line", "openapi: 3.1.0\nx: {" + repeatf("a%d: b", 20_000) + "}\npaths: {/a: {get: {}}}\n"},
}

func toolWith(schema string) string { return `{"tools":[{"name":"t","inputSchema":` + schema + `}]}` }

func selfReferences(key string, n int) string {
	return toolWith(`{"type":"object","` + key + `":[` + repeat(`{"$ref":"#"}`, n) + `]}`)
}

func repeat(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }

func repeatf(format string, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func repeatLines(format string, n int) string {
	return strings.ReplaceAll(repeatf(format, n), "\n,", "\n")
}

func aliases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d: &x%d [%s]\n", i+1, i+1, repeat(fmt.Sprintf("*x%d", i), 10))
	}
	return b.String()
}

func indented(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String() + strings.Repeat(" ", n+1) + "b"
}

// operations describes n operations on one schema of properties, by a reference to it
// or to its place.
func operations(n, properties int, whole bool) string {
	ref := "#/components/schemas/S"
	if whole {
		ref = "#/components/requestBodies/B"
	}
	body := `{"content":{"application/json":{"schema":{"$ref":"` + ref + `"}}}}`
	if whole {
		body = `{"$ref":"` + ref + `"}`
	}
	return `{"openapi":"3.1.0","paths":{` + repeatf(`"/p%d":{"post":{"requestBody":`+strings.ReplaceAll(body, "%", "%%")+`}}`, n) +
		`},"components":{"schemas":{"S":{"type":"object","properties":{` + repeatf(`"p%d":{"type":"string"}`, properties) + `}}},` +
		`"requestBodies":{"B":{"content":{"application/json":{"schema":{"type":"object","properties":{` + repeatf(`"p%d":{"type":"string"}`, properties) + `}}}}}}}}`
}

// An import ends, and takes memory in proportion to what honest tools of the same size
// take. 300 references of a schema to itself made one that did not end.
func TestImportBombsEnd(t *testing.T) {
	var honest []string
	for i := range 400 {
		honest = append(honest, fmt.Sprintf(`{"name":"t%d","description":"does something","inputSchema":{"type":"object","properties":{%s}}}`, i, repeatf(fmt.Sprintf(`"p%d_%%d":{"type":"string"}`, i), 10)))
	}
	text := "[" + strings.Join(honest, ",") + "]"
	cost := func(text string) (alloc float64, took time.Duration, err error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err = Read(t.Context(), strings.NewReader(text), "")
		took = time.Since(start)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc), took, err
	}
	base, baseTook, err := cost(text)
	if err != nil {
		t.Fatal(err)
	}
	perByte := base / float64(len(text))
	for _, b := range importBombs {
		alloc, took, err := cost(b.text)
		t.Logf("%-32s %8d bytes %8.1f MB %6.2f s: %.100v", b.name, len(b.text), alloc/1e6, took.Seconds(), err)
		if ratio := alloc / (float64(len(b.text)) * perByte); ratio > 50 && alloc > 64<<20 {
			t.Errorf("%s: %.0f MB of memory for %d bytes, %.0f times what honest tools take", b.name, alloc/1e6, len(b.text), ratio)
		}
		ratio := func() float64 {
			return took.Seconds() / (baseTook.Seconds() * float64(len(b.text)) / float64(len(text)))
		}
		// Other processes only add to the time, so the least of several measurements counts.
		for n := 0; n < 7 && ratio() > 100 && took > 10*baseTook; n++ {
			_, again, _ := cost(b.text)
			took = min(took, again)
		}
		if ratio() > 100 && took > 10*baseTook {
			t.Errorf("%s: %v for %d bytes, %.0f times what honest tools take", b.name, took, len(b.text), ratio())
		}
	}
}
