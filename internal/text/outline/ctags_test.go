package outline_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/text/outline"
)

// corpus names a folder that holds a folder of source files for each language of
// ctagsKinds.
const corpus = "CAIRN_CODE_CORPUS"

// ctagsKinds are the kinds of universal-ctags that Outline has to find: functions,
// methods and types.
var ctagsKinds = map[string]string{
	"Go": "f t s i", "Python": "c f m", "JavaScript": "f c m g G S", "TypeScript": "f c i g m a G", "Java": "a c g i m",
	"C": "f s u g t", "C++": "f c s u g t", "C#": "c i g s m", "Rust": "f s i g t P", "Ruby": "c f S m", "PHP": "c f i t",
	"Kotlin": "i c o m T", "Sh": "f", "SQL": "f p t T V",
}

type ctag struct {
	Name, Kind, Path string
	Line             int
	Scope, ScopeKind string
}

// TestAgainstCtags prints, for each language, which part of the symbols of
// universal-ctags Outline finds and which part of its symbols ctags has.
func TestAgainstCtags(t *testing.T) {
	dir := os.Getenv(corpus)
	if dir == "" {
		t.Skip("needs " + corpus + ": a folder of source files for each language")
	}
	if _, err := exec.LookPath("ctags"); err != nil {
		t.Skip("needs universal-ctags: install the package universal-ctags")
	}
	only := os.Getenv("CAIRN_CODE_LANGUAGE")
	t.Logf("%-11s %6s %7s %7s %7s %7s", "language", "files", "symbols", "found", "precise", "MB/s")
	var languages []string
	for l := range ctagsKinds {
		if only != "" && !slices.Contains(strings.Split(only, ","), l) {
			continue
		}
		languages = append(languages, l)
	}
	slices.Sort(languages)
	for _, l := range languages {
		compare(t, dir, l)
	}
}

func compare(t *testing.T, dir, language string) {
	files, _ := filepath.Glob(filepath.Join(dir, language, "*"))
	wanted := ctags(t, language, ctagsKinds[language], files)
	all := ctags(t, language, "*", files)
	var want, found, ours, known, size int
	var spent time.Duration
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte(" \n"))
		began := time.Now()
		symbols, _ := outline.Outline(f, src)
		spent += time.Since(began)
		size += len(src)
		n, missed := matched(src, symbols, wanted[f], true)
		want, found = want+len(wanted[f]), found+n
		for _, m := range missed {
			if os.Getenv("CAIRN_CODE_MISSED") != "" {
				t.Logf("missed %s %s:%d %s", m.Kind, f, m.Line, m.Name)
			}
		}
		for _, s := range symbols {
			if slices.Contains([]string{"var", "let", "const", "impl", "namespace", "macro", "static", "mod", "val", "module"}, s.Kind) {
				continue
			}
			ours++
			if n, _ := matched(src, []outline.Symbol{s}, all[f], false); n > 0 {
				known++
			} else if os.Getenv("CAIRN_CODE_EXTRA") != "" {
				t.Logf("extra %s %s:%d %s", s.Kind, f, 1+bytes.Count(src[:s.Decl], []byte("\n")), s.Name)
			}
		}
	}
	t.Logf("%-11s %6d %7d %6.2f%% %6.2f%% %7.1f", language, len(files), want, 100*float64(found)/float64(max(1, want)),
		100*float64(known)/float64(max(1, ours)), float64(size)/1e6/spent.Seconds())
}

// matched counts the tags for which a symbol with the same name contains the line. Of
// several symbols it takes the one with the nearest declaration.
func matched(src []byte, symbols []outline.Symbol, tags []ctag, each bool) (n int, missed []ctag) {
	used := make([]bool, len(symbols))
	lines := make([][3]int, len(symbols))
	for i, s := range symbols {
		first := 1 + bytes.Count(src[:s.Start], []byte("\n"))
		decl := first + bytes.Count(src[s.Start:s.Decl], []byte("\n"))
		last := decl + bytes.Count(src[s.Decl:s.End], []byte("\n"))
		if len(s.Names) == 0 && s.Kind != "typedef" {
			last = min(last, decl+10)
		}
		lines[i] = [3]int{first, decl, last}
	}
	for _, tag := range tags {
		best := -1
		for i, s := range symbols {
			if used[i] && each && s.Name == tag.Name || s.Name != tag.Name && !slices.Contains(s.Names, tag.Name) || tag.Line < lines[i][0] || tag.Line > lines[i][2] {
				continue
			}
			if best < 0 || distance(lines[i][1], tag.Line) < distance(lines[best][1], tag.Line) {
				best = i
			}
		}
		if best < 0 {
			missed = append(missed, tag)
			continue
		}
		n++
		used[best] = used[best] || symbols[best].Name == tag.Name
	}
	return n, missed
}

func distance(a, b int) int { return max(a-b, b-a) }

// wrong reports whether a tag is a mistake of ctags: an object or a lambda that it
// takes for a class or a method, or an import.
func wrong(language, line string, tag ctag) bool {
	has := func(pattern string) bool {
		return regexp.MustCompile(strings.ReplaceAll(pattern, "NAME", regexp.QuoteMeta(tag.Name))).MatchString(line)
	}
	switch {
	case strings.HasPrefix(tag.Name, "__anon"), strings.Contains(tag.Name, "nonymous"):
		return true
	case language == "JavaScript" && tag.Kind == "class":
		return !has(`\bclass\b|\bfunction\s+NAME\b|\bNAME\s*=\s*function`)
	case language == "TypeScript" && tag.Kind == "alias":
		return !has(`\btype\s+NAME\s*(=|<|$)`)
	case language == "C++" && tag.Kind == "typedef":
		return tag.ScopeKind == "function"
	case language == "Kotlin" && tag.Kind == "method" && tag.Name == "<lambda>":
		return true
	case language == "Kotlin" && tag.Kind == "method":
		return !has(`\bfun\b`)
	case language == "Kotlin":
		return !has(`\b(class|object|interface|typealias)\b`)
	case language == "Sh":
		return strings.HasSuffix(tag.Name, "=")
	}
	return false
}

// ctags returns the tags of the files without the names that ctags generates.
func ctags(t *testing.T, language, kinds string, files []string) map[string][]ctag {
	kinds = strings.ReplaceAll(kinds, " ", "")
	cmd := exec.Command("ctags", "--output-format=json", "--fields=+neKSZs", "--language-force="+language, "--kinds-"+language+"="+kinds, "-L", "-", "-f", "-")
	if kinds == "*" {
		cmd.Args = append(cmd.Args, "--extras=+q")
	}
	sources := map[string][]string{}
	cmd.Stdin = strings.NewReader(strings.Join(files, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string][]ctag{}
	for line := range bytes.Lines(out) {
		var tag ctag
		if json.Unmarshal(line, &tag) != nil || tag.Line == 0 {
			continue
		}
		if sources[tag.Path] == nil {
			src, err := os.ReadFile(tag.Path)
			if err != nil {
				t.Fatal(err)
			}
			sources[tag.Path] = strings.Split(string(src), "\n")
		}
		if op, ok := strings.CutPrefix(tag.Name, "operator "); ok && !regexp.MustCompile(`^\w`).MatchString(op) {
			tag.Name = "operator" + op
		}
		if language == "C#" { // IEnumerable.GetEnumerator
			tag.Name = tag.Name[strings.LastIndexByte(tag.Name, '.')+1:]
		}
		if !wrong(language, sources[tag.Path][tag.Line-1], tag) {
			tags[tag.Path] = append(tags[tag.Path], tag)
		}
	}
	return tags
}
