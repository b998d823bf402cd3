package wordpiece

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// The table of characters in testdata/unigram.json replaces a ligature, a compatibility
// letter, a combining accent and other white space. The ids are those of the Python library
// tokenizers for the same file.
func TestUnigram(t *testing.T) {
	file, err := os.ReadFile("testdata/unigram.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"":                      {0, 2},
		"red":                   {0, 5, 2},
		"red green":             {0, 5, 12, 2},
		"  red\t\n redd ":       {0, 5, 5, 7, 2},
		"\ufb01 fi":             {0, 4, 8, 4, 8, 2},
		"cafe\u0301 \u00e9":     {0, 4, 3, 15, 9, 14, 4, 14, 2},
		"\u00c5a aaa":           {0, 4, 18, 4, 15, 18, 2},
		"zz red \u2603\u2603字字": {0, 4, 3, 5, 4, 3, 19, 19, 2},
		"a\u3000b":              {0, 4, 15, 16, 2},
	} {
		if got := tok.AppendIDs(nil, text, 100); !slices.Equal(got, want) {
			t.Errorf("AppendIDs(%q) = %v, want %v", text, got, want)
		}
		if got := tok.Count(text); got != len(want)-2 {
			t.Errorf("Count(%q) = %d, want %d", text, got, len(want)-2)
		}
	}
	if ids, second := tok.AppendPair(nil, "red", "green b", 100); !slices.Equal(ids, []int32{0, 5, 2, 2, 12, 16, 2}) || second != 3 {
		t.Errorf("AppendPair = %v, %d", ids, second)
	}
	for _, longest := range []int{-1, 0, 2, 3, 5} {
		got := tok.AppendIDs(nil, strings.Repeat("red ", 50), longest)
		if want := max(2, longest); len(got) != want || got[0] != 0 || got[want-1] != 2 {
			t.Errorf("AppendIDs for %d = %v", longest, got)
		}
	}
	if n := tok.Count(strings.Repeat("字", 1<<20) + "\xff"); n != 1<<20+2 {
		t.Errorf("a long word has %d pieces", n)
	}
}

func TestUnigramRefuses(t *testing.T) {
	file, err := os.ReadFile("testdata/unigram.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct{ from, to, want string }{
		"byte fallback":  {`"unk_id": 3`, `"unk_id": 3, "byte_fallback": true`, "byte_fallback"},
		"unknown token":  {`"unk_id": 3`, `"unk_id": 300`, "300"},
		"normalizer":     {`"Precompiled"`, `"NFD"`, "NFD"},
		"pre-tokenizer":  {`"WhitespaceSplit"`, `"ByteLevel"`, "ByteLevel"},
		"no space":       {`"always"`, `"never"`, "never"},
		"special tokens": {`["</s>", 0]`, `["x", 0]`, "special token"},
		"a score":        {`["d", -2.5]`, `["d", "x"]`, "entry 7"},
	} {
		changed := strings.Replace(string(file), change.from, change.to, 1)
		if _, err := Open([]byte(changed)); changed == string(file) || err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: %v, want %q", name, err, change.want)
		}
	}
	// A damaged table changes nothing, or is refused; it never panics.
	var f map[string]any
	if err := json.Unmarshal(file, &f); err != nil {
		t.Fatal(err)
	}
	n := f["normalizer"].(map[string]any)
	table := n["precompiled_charsmap"].(string)
	for i := 0; i < len(table); i += 7 {
		n["precompiled_charsmap"] = table[:i] + "////" + table[min(len(table), i+4):]
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if tok, err := Open(b); err == nil {
			tok.Count("cafe\u0301 \ufb01 \u00c5")
		}
	}
}
