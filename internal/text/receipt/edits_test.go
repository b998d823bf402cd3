package receipt

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// edit changes a folder whose document path has the cited lines from start to end.
type edit struct {
	name  string
	apply func(f folder, path string, lines []string, start, end int) (applied bool)
	want  Status
}

func join(lines ...[]string) string {
	var all []string
	for _, l := range lines {
		all = append(all, l...)
	}
	return strings.Join(all, "\n")
}

var digits = regexp.MustCompile(`[0-9]+`)

// replaced returns an edit that rewrites the cited lines.
func replaced(rewrite func(cited string) string) func(f folder, path string, lines []string, start, end int) bool {
	return func(f folder, path string, lines []string, start, end int) bool {
		cited := join(lines[start-1 : end])
		now := rewrite(cited)
		f[path] = join(lines[:start-1], []string{now}, lines[end:])
		return now != cited
	}
}

// edits are the kinds of edit, with what becomes of the cited lines.
var edits = []edit{
	{"insert above", func(f folder, path string, lines []string, start, _ int) bool {
		f[path] = join([]string{"An inserted line.", ""}, lines)
		return true
	}, Moved},
	{"move within", func(f folder, path string, lines []string, start, end int) bool {
		f[path] = join(lines[:start-1], lines[end:], []string{""}, lines[start-1:end])
		return end < len(lines)-1
	}, Moved},
	{"to another file", func(f folder, path string, lines []string, start, end int) bool {
		f[path] = join(lines[:start-1], lines[end:])
		f["other.md"] = join([]string{"# Other", ""}, lines[start-1:end], []string{"", "The end."})
		return true
	}, Moved},
	{"rename", func(f folder, path string, lines []string, _, _ int) bool {
		f["renamed/"+path] = f[path]
		delete(f, path)
		return true
	}, Moved},
	{"indent", replaced(func(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }), Moved},
	{"reflow", replaced(func(s string) string {
		if strings.Count(s, " ") < 2 {
			return s
		}
		half := len(s)/2 + strings.IndexByte(s[len(s)/2:]+" ", ' ')
		return strings.ReplaceAll(s[:half], "\n", " ") + "\n" + strings.TrimLeft(s[half:], " ")
	}), Moved},
	{"number", replaced(func(s string) string {
		at := digits.FindStringIndex(s)
		if at == nil {
			return s
		}
		n, _ := strconv.Atoi(s[at[0]:at[1]])
		return s[:at[0]] + strconv.Itoa(n+1) + s[at[1]:]
	}), Changed},
	{"negate", replaced(func(s string) string {
		if at := strings.LastIndexByte(s, ' '); at > 0 {
			return s[:at] + " not" + s[at:]
		}
		return s
	}), Changed},
	{"delete", func(f folder, path string, lines []string, start, end int) bool {
		f[path] = join(lines[:start-1], lines[end:])
		return true
	}, Removed},
	{"duplicate", func(f folder, path string, lines []string, start, end int) bool {
		f[path] = join(lines[:end], lines[start-1:end], lines[end:])
		return true
	}, Same},
	{"encoding", func(f folder, path string, _ []string, start, _ int) bool {
		f[path] = "\ufeff" + f[path]
		return start == 1
	}, Moved},
	{"line ends", func(f folder, path string, _ []string, start, end int) bool {
		f[path] = strings.ReplaceAll(f[path], "\n", "\r\n")
		return true
	}, Moved},
}

// corpus returns the lines of documents and source code: those of this repository, or of the
// folder in CAIRN_RECEIPTS.
func corpus(t *testing.T) map[string][]string {
	root := "../../.."
	if dir := os.Getenv("CAIRN_RECEIPTS"); dir != "" {
		root = dir
	}
	files := map[string][]string{}
	for _, pattern := range []string{"docs/*.md", "retriever/*.go", "internal/text/*/*.go", "*.md", "*/*.md", "*/*.rst"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.ContainsRune(data, '\r') {
				files[filepath.Base(name)] = strings.Split(string(data), "\n")
			}
		}
	}
	return files
}

// solid returns text without white space.
func solid(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }), "")
}

// TestEdits puts receipts through twelve kinds of edit. With CAIRN_RECEIPTS it takes
// 10,000 receipts.
func TestEdits(t *testing.T) {
	files := corpus(t)
	names := slices.Sorted(maps.Keys(files))
	count := 300
	if os.Getenv("CAIRN_RECEIPTS") != "" {
		count = 10_000
	}
	rng := rand.New(rand.NewPCG(42, 42))
	tally := map[string]*[4]int{} // applied, right, false changed, false same
	for _, e := range edits {
		tally[e.name] = &[4]int{}
	}
	for made := 0; made < count; {
		path := names[rng.IntN(len(names))]
		lines := files[path]
		start := 1 + rng.IntN(len(lines))
		end := min(len(lines), start+rng.IntN(20))
		text, cited := join(lines), join(lines[start-1:end])
		// Lines that occur twice, or end with blank ones, have no single right answer.
		if len(solid(cited)) < minElsewhere || strings.Count(solid(text), solid(cited)) != 1 || solid(lines[start-1]) == "" || solid(lines[end-1]) == "" {
			continue
		}
		made++
		r := mustMake(t, path, "", text, start, end)
		for _, e := range edits {
			f := folder{path: text, "unrelated.md": guide}
			if !e.apply(f, path, lines, start, end) {
				continue
			}
			got, n := checkOne(t, f, r), tally[e.name]
			n[0]++
			there := strings.Split(f[path], "\n")
			same := f[path] != "" && end <= len(there) && join(there[start-1:end]) == cited
			switch {
			case got.Status == Same && !same:
				n[3]++
				t.Errorf("%s of %s: same, but the bytes changed", e.name, r.Receipt)
			case got.Status == e.want, same && got.Status == Same:
				n[1]++
			case got.Status == Changed && e.want == Moved:
				n[2]++
			}
			if got.Status == Moved && got.Now != nil && !strings.Contains(solid(join(strings.Split(f[got.Now.Receipt.Path], "\n")[got.Now.Receipt.Start-1:got.Now.Receipt.End])), solid(cited)) {
				t.Errorf("%s of %s: moved to %s, which has another text", e.name, r.Receipt, got.Now.Receipt.place())
			}
		}
	}
	for _, e := range edits {
		n := tally[e.name]
		t.Logf("| %s | %d | %s | %.4f | %.4f | %d |", e.name, n[0], e.want, float64(n[1])/float64(n[0]), float64(n[2])/float64(n[0]), n[3])
		if e.want == Moved && float64(n[1]) < .99*float64(n[0]) {
			t.Errorf("%s: %d of %d found", e.name, n[1], n[0])
		}
		if float64(n[1]) < .97*float64(n[0]) {
			t.Errorf("%s: %d of %d right", e.name, n[1], n[0])
		}
	}
}

// TestCommits puts receipts of the files that real commits change through these commits.
// CAIRN_HISTORY lists git directories.
func TestCommits(t *testing.T) {
	list := os.Getenv("CAIRN_HISTORY")
	if list == "" {
		t.Skip("CAIRN_HISTORY lists no git directories")
	}
	for _, dir := range filepath.SplitList(list) {
		git := func(args ...string) string {
			out, err := exec.Command("git", append([]string{"--git-dir=" + dir, "-c", "core.quotepath=off"}, args...)...).Output()
			if err != nil {
				return ""
			}
			return string(out)
		}
		commits := strings.Fields(git("rev-list", "--no-merges", "--max-count=110", "HEAD"))
		rng := rand.New(rand.NewPCG(7, 7))
		var asked, same, moved, changed, removed, wrong, missed, reflowed, seen int
		for _, commit := range commits {
			before, after, cited := folder{}, folder{}, []Full{}
			for _, line := range strings.Split(git("diff-tree", "--no-commit-id", "--name-status", "-r", "-M", commit), "\n") {
				if cols := strings.Split(line, "\t"); len(cols) > 1 {
					old, new := cols[1], cols[len(cols)-1]
					if cols[0] != "A" {
						before[old] = git("show", commit+"~1:"+old)
					}
					if cols[0] != "D" {
						after[new] = git("show", commit+":"+new)
					}
				}
			}
			for path, text := range before {
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				if bytes.IndexByte([]byte(text), 0) >= 0 || len(text) > 1<<20 {
					continue
				}
				for range 20 {
					start := 1 + rng.IntN(len(lines))
					end := min(len(lines), start+rng.IntN(15))
					if r, err := Make(path, "", []byte(text), start, end); err == nil && r.Receipt.Mark.length() >= minElsewhere {
						cited = append(cited, r)
					}
				}
			}
			if len(cited) == 0 {
				continue
			}
			seen++
			findings, err := Check(t.Context(), after, cited)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range findings {
				at := cited[i].Receipt
				old := join(strings.Split(before[at.Path], "\n")[at.Start-1 : at.End])
				now := strings.Split(after[at.Path], "\n")
				asked++
				switch f.Status {
				case Same:
					if same++; at.End > len(now) || join(now[at.Start-1:at.End]) != old {
						wrong++
						t.Errorf("%s %s: same, but the bytes changed", commit, at)
					}
				case Moved:
					moved++
				default:
					if f.Status == Changed {
						changed++
					} else {
						removed++
					}
					for path, text := range after {
						// A whole-line match was missed; a match of white space was.
						if strings.Contains("\n"+text+"\n", "\n"+old+"\n") {
							missed++
							t.Logf("%s %s is %s, but %s has it", commit[:8], at, f.Status, path)
							break
						}
						if path == at.Path && strings.Contains(solid(text), solid(old)) {
							reflowed++
						}
					}
				}
			}
		}
		t.Logf("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |", filepath.Base(filepath.Dir(dir)), seen, asked, same, moved, changed, removed, wrong, missed, reflowed)
	}
}

// BenchmarkCheck checks 10,000 receipts of 1,000 documents of 10 kB that did not change.
func BenchmarkCheck(b *testing.B) {
	f, list := folder{}, []Full{}
	for i := range 1000 {
		path := "docs/" + strconv.Itoa(i) + ".md"
		f[path] = strings.Repeat(strconv.Itoa(i)+" words in a line of some sixty characters, of all in all 10 kB\n", 150)
		for n := range 10 {
			r, err := Make(path, "", []byte(f[path]), 10*n+1, 10*n+12)
			if err != nil {
				b.Fatal(err)
			}
			list = append(list, r)
		}
	}
	for b.Loop() {
		if _, err := Check(b.Context(), f, list); err != nil {
			b.Fatal(err)
		}
	}
}
