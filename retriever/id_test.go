package retriever

import (
	"context"
	"strings"
	"testing"

	"cairn/internal/text/convert"
)

// sphinx is a page as Sphinx writes it: the ids of functions are those of definition terms.
const sphinx = `<html><head><title>subprocess</title></head><body><div role="main"><h1>subprocess — Subprocess management</h1>
<section id="using"><h2>Using the subprocess module</h2><p>The recommended approach is the run function, subprocess.run, for all cases.</p>
<dl><dt class="sig" id="subprocess.run"><span>subprocess.</span><span>run</span>(<em>args</em>, <em>*</em>, ` +
	"stdin=None, input=None, stdout=None, stderr=None, capture_output=False, shell=False, cwd=None, timeout=None, check=False, encoding=None, errors=None, text=None, env=None, universal_newlines=None, pass_fds=(), preexec_fn=None, start_new_session=False, umask=-1" +
	`, <em>**other_popen_kwargs</em>)<a class="headerlink" href="#subprocess.run">¶</a></dt><dd><p>Run the command described by args. Wait for it to complete.</p></dd></dl>
<dl><dt id="subprocess.CompletedProcess">class subprocess.CompletedProcess</dt><dd><p>The return value of subprocess.run(), a process that has finished: subprocess.run returns it, and run, subprocess.run again.</p></dd>
<dt id="cmdoption-m">-m module-name</dt><dd><p>Search sys.path for the named module.</p></dd></dl></section></div></body></html>`

// TestIDs: the ids of a page are the anchors of its sections, whatever the length of their
// headings. They find their sections, and the text of an answer does not contain them.
func TestIDs(t *testing.T) {
	page, err := convert.Markdown(convert.HTML, "subprocess.html", []byte(sphinx))
	must(t, err)
	f := open(t, map[string]string{
		"subprocess.html": string(page),
		"news.md":         "# News\n\n## 3.9\n\nsubprocess.run and subprocess.CompletedProcess and cmdoption-m changed: subprocess.run.\n",
	}, nil)
	f.write("subprocess.html", sphinx)
	for _, id := range []string{"subprocess.run", "subprocess.CompletedProcess", "cmdoption-m"} {
		for _, tokens := range []int{0, 500} {
			answer, err := f.Search(context.Background(), Query{Text: id, MaxTokens: tokens})
			must(t, err)
			if len(answer.Results) == 0 || answer.Results[0].Path != "subprocess.html" || answer.Results[0].Anchor != id {
				t.Errorf("%s, %d tokens: %+v, want its section first", id, tokens, answer.Results)
				continue
			}
			for _, r := range answer.Results {
				if strings.Contains(renderJSON(r), "{#") {
					t.Errorf("%s, %d tokens: %+v contains an id", id, tokens, r)
				}
			}
		}
		read, err := f.Read(context.Background(), ReadRequest{Path: "subprocess.html#" + id})
		must(t, err)
		if strings.Contains(read.Content, "{#") || !strings.Contains(read.Content, id[strings.IndexAny(id, ".-")+1:]) {
			t.Errorf("%s: read %q", id, read.Content)
		}
	}
	if _, err := f.Read(context.Background(), ReadRequest{Path: "subprocess.html#subprocessrun"}); err != nil {
		t.Errorf("by its slug: %v", err)
	}
}
