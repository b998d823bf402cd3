package wordpiece

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shipped opens the tokenizer of the model that cairn ships.
func shipped(t testing.TB) *Tokenizer {
	t.Helper()
	return open(t, "../minilm/tokenizer.json")
}

func open(t testing.TB, path string) *Tokenizer {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := New(b)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// encoded is one line of a reference file: a text and what the Python library
// makes of it.
type encoded struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

func readEncoded(t testing.TB, path string) []encoded {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []encoded
	for s := json.NewDecoder(bufio.NewReader(f)); s.More(); {
		var e encoded
		if err := s.Decode(&e); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, e)
	}
	return lines
}

func TestGolden(t *testing.T) {
	tok := shipped(t)
	for _, e := range readEncoded(t, "testdata/golden.jsonl") {
		if got := tok.AppendIDs(nil, e.Text, 1<<20); !cmp.Equal(got, e.IDs) {
			t.Errorf("AppendIDs(%+q)\n got %d\nwant %d", e.Text, got, e.IDs)
		}
		if got, want := tok.Count(e.Text), len(e.IDs)-2; got != want {
			t.Errorf("Count(%+q) = %d, want %d", e.Text, got, want)
		}
	}
}

func TestReference(t *testing.T) {
	models, reference := os.Getenv("CAIRN_MODELS"), os.Getenv("CAIRN_REFERENCE")
	if models == "" || reference == "" {
		t.Skip("CAIRN_MODELS and CAIRN_REFERENCE name no folders")
	}
	for _, c := range []struct {
		model, reference string
		max, lines       int
	}{
		{"all-MiniLM-L6-v2", "minilm", 256, 250},
		{"bge-small-en-v1.5", "bge-small", 512, 120},
	} {
		tok := open(t, filepath.Join(models, c.model, "tokenizer.json"))
		lines := readEncoded(t, filepath.Join(reference, c.reference, "reference.jsonl"))
		if len(lines) != c.lines {
			t.Errorf("%s: %d lines, want %d", c.reference, len(lines), c.lines)
		}
		for i, e := range lines {
			if got := tok.AppendIDs(nil, e.Text, c.max); !cmp.Equal(got, e.IDs) {
				t.Errorf("%s line %d: AppendIDs(%.80q)\n got %d\nwant %d", c.reference, i+1, e.Text, got, e.IDs)
			}
		}
	}
}

func TestAppendIDsCuts(t *testing.T) {
	tok := shipped(t)
	const text = "unaffable embeddings"
	all := tok.AppendIDs(nil, text, 1000)
	if want := []int32{101, 14477, 20961, 3468, 7861, 8270, 4667, 2015, 102}; !cmp.Equal(all, want) {
		t.Fatalf("AppendIDs(%q) = %d, want %d", text, all, want)
	}
	for limit := -1; limit <= len(all)+1; limit++ {
		keep := max(2, min(limit, len(all)))
		want := append(append([]int32{7}, all[:keep-1]...), 102)
		if got := tok.AppendIDs([]int32{7}, text, limit); !cmp.Equal(got, want) {
			t.Errorf("AppendIDs(%q, max %d) = %d, want %d", text, limit, got, want)
		}
	}
}

func TestCountIsAdditive(t *testing.T) {
	tok := shipped(t)
	lines := readEncoded(t, "testdata/golden.jsonl")
	for i, a := range lines {
		b := lines[(i*7+3)%len(lines)]
		want := tok.Count(a.Text) + tok.Count(b.Text)
		for _, space := range []string{" ", "\n", "\t ", "\u00a0", "\u3000"} {
			if got := tok.Count(a.Text + space + b.Text); got != want {
				t.Errorf("Count(%+q + %+q + %+q) = %d, want %d", a.Text, space, b.Text, got, want)
			}
		}
	}
}

func TestInvalidUTF8IsSkipped(t *testing.T) {
	tok := shipped(t)
	for _, c := range []struct{ broken, clean string }{
		{"hel\xfflo", "hello"}, {"\xc3", ""}, {"a\xe4\xb8 b", "a b"}, {"\xed\xa0\x80x", "x"}, {"\xf4\x90\x80\x80", ""},
	} {
		got, want := tok.AppendIDs(nil, c.broken, 100), tok.AppendIDs(nil, c.clean, 100)
		if !cmp.Equal(got, want) {
			t.Errorf("AppendIDs(%q) = %d, want %d as of %q", c.broken, got, want, c.clean)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	tok := shipped(t)
	text := strings.Repeat("Kubernetes schedules Pods, naïvely 中文 [MASK] ok. ", 50)
	ids := make([]int32, 0, 4096)
	if n := testing.AllocsPerRun(20, func() {
		tok.Count(text)
		ids = tok.AppendIDs(ids[:0], text, 4096)
	}); n != 0 {
		t.Errorf("%v allocations a text, want 0", n)
	}
}

func TestVocabSize(t *testing.T) {
	if got, want := shipped(t).VocabSize(), 30522; got != want {
		t.Errorf("VocabSize() = %d, want %d", got, want)
	}
}

// A cased model keeps capitals and accents, and may frame its text in the older
// form of post-processor.
func TestCased(t *testing.T) {
	tok, err := New([]byte(`{"added_tokens":[{"id":0,"content":"[UNK]"}],
		"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":false},
		"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":{"type":"BertProcessing","sep":["[SEP]",2],"cls":["[CLS]",1]},
		"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
		"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"É":3,"##té":4,"e":5,"##te":6,"\u4e2d":7,"\"":8,"한":9,"##":10,"":11}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"Été", []int32{1, 3, 4, 2}},
		{"ete", []int32{1, 5, 6, 2}},
		{"Ete", []int32{1, 0, 2}},
		{"e中\"e", []int32{1, 5, 7, 8, 5, 2}},
		{"한", []int32{1, 9, 2}},
		{"##", []int32{1, 0, 0, 2}},
	} {
		if got := tok.AppendIDs(nil, c.text, 100); !cmp.Equal(got, c.want) {
			t.Errorf("AppendIDs(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	const good = `{"added_tokens":[{"id":3,"content":"[MASK]"}],
		"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
		"pre_tokenizer":{"type":"BertPreTokenizer"},
		"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]"}},{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"[SEP]"}}]},
		"model":{"type":"WordPiece","unk_token":"[UNK]","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2}}}`
	if _, err := New([]byte(good)); err != nil {
		t.Fatalf("New(good) = %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{good, "", "unexpected end"},
		{good, "null", `model ""`},
		{good, "[]", "cannot unmarshal"},
		{`"WordPiece"`, `"BPE"`, `model "BPE"`},
		{`"BertNormalizer"`, `"NFC"`, `normalizer "NFC"`},
		{`"BertPreTokenizer"`, `"Whitespace"`, `pre_tokenizer "Whitespace"`},
		{`"clean_text":true`, `"clean_text":false`, "clean_text"},
		{`"strip_accents":null`, `"strip_accents":false`, "strip_accents"},
		{`"content":"[MASK]"`, `"content":"[MASK]","single_word":true`, `"[MASK]"`},
		{`"content":"[MASK]"`, `"content":""`, "empty"},
		{`"id":3`, `"id":-3`, "id -3"},
		{`"TemplateProcessing"`, `"ByteLevel"`, `post_processor "ByteLevel"`},
		{`{"SpecialToken":{"id":"[CLS]"}},`, ``, "template"},
		{`{"id":"[CLS]"}`, `{"id":"<s>"}`, `"<s>"`},
		{`"unk_token":"[UNK]",`, ``, `special token ""`},
		{`":100`, `":0`, "max_input_chars_per_word 0"},
		{`":100`, `":257`, "max_input_chars_per_word 257"},
		{`"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2}`, `"vocab":[]`, "vocab is not an object"},
		{`,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2}`, ``, "no vocabulary"},
		{`"[UNK]":0`, `"[UNK]":-1`, `"[UNK]" has id -1`},
		{`"[UNK]":0`, `"[UNK]":"0"`, `"[UNK]" has id`},
		{`"[UNK]":0`, `"[UNK]":{"a":1}`, `"[UNK]" has id`},
		{`"[UNK]":0`, `"[UNK]":99999999`, `"[UNK]" has id 99999999`},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("%q is not in the good file", c.old)
		}
		_, err := New([]byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%s -> %s) = %v, want an error with %q", c.old, c.new, err, c.want)
		}
	}
}

func FuzzAppendIDs(f *testing.F) {
	tok := shipped(f)
	f.Add("Hello, wörld \xff中 [MASK] 한국", 9)
	f.Add(strings.Repeat("a", 300)+strings.Repeat("\u0301", 300), 256)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		ids := tok.AppendIDs(nil, text, limit)
		if len(ids) < 2 || ids[0] != 101 || ids[len(ids)-1] != 102 || len(ids) > max(limit, 2) {
			t.Fatalf("AppendIDs(%q, %d) = %d", text, limit, ids)
		}
		for _, id := range ids {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Errorf("AppendIDs(%q) gives id %d, want below %d", text, id, tok.VocabSize())
			}
		}
		if n := tok.Count(text); limit >= n+2 && len(ids) != n+2 {
			t.Errorf("AppendIDs(%q) gives %d ids, Count says %d", text, len(ids), n)
		}
		if got, want := tok.Count(strings.ToValidUTF8(text, "\ufffd")), tok.Count(text); got != want {
			t.Errorf("Count(%q) = %d, %d with U+FFFD for invalid bytes", text, want, got)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	file, err := os.ReadFile("../minilm/tokenizer.json")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := New(file); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkText(b *testing.B) string {
	var text strings.Builder
	for _, e := range readEncoded(b, "testdata/golden.jsonl")[:60] {
		text.WriteString(e.Text + "\n")
	}
	const prose = "The Kubernetes scheduler assigns Pods to Nodes: it filters the feasible ones, scores them, and binds the Pod to the best. "
	return strings.Repeat(prose, 4*text.Len()/len(prose)) + text.String()
}

func BenchmarkCount(b *testing.B) {
	tok, text := shipped(b), benchmarkText(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tok.Count(text)
	}
}

func BenchmarkAppendIDs(b *testing.B) {
	tok, text := shipped(b), benchmarkText(b)
	ids := make([]int32, 0, len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		ids = tok.AppendIDs(ids[:0], text, len(text))
	}
}
