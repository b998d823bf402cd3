package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// post sends a form as a page of the given origin does, "" for a client without one.
func post(h http.Handler, origin, target string, form url.Values, header ...string) (int, http.Header, string) {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// TestCards: forms create and change cards, and say why they are refused.
func TestCards(t *testing.T) {
	h, root := folder(t)
	const own = "http://example.com" // the host of httptest's requests
	status, header, body := post(h, own, "/cards", url.Values{"title": {"Plant a <tree>"}, "priority": {"high"}, "tags": {"garden, spring"}, "depends_on": {"aaa111"}, "assignee": {"Ann"}})
	if status != http.StatusSeeOther || header.Get("Location") != "/w/notes/tasks" {
		t.Fatalf("creating: %d to %q\n%s", status, header.Get("Location"), body)
	}
	_, _, board := get(t, h, "/tasks")
	for _, want := range []string{"Plant a &lt;tree&gt;", "#garden · #spring", "Ann", `draggable="true" data-card="bbb222"`, `action="/w/notes/cards"`} {
		if !strings.Contains(board, want) {
			t.Errorf("the board has no %q in\n%s", want, board)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, ".cairn/cards/*.md"))
	if err != nil || len(files) != 4 {
		t.Fatalf("cards %v, %v, want three and the new one", files, err)
	}
	for _, file := range files { // the new one is not indexed
		if status, _, page := get(t, h, "/doc?path=.cairn/cards/"+filepath.Base(file)); status != http.StatusOK || !strings.Contains(page, "card-form") {
			t.Errorf("%s: %d\n%s", file, status, page)
		}
	}
	status, header, body = post(h, own, "/cards/bbb222", url.Values{"title": {"Paint it red"}, "status": {"active"}, "notes": {"soon"}, "tags": {""}})
	if status != http.StatusSeeOther || header.Get("Location") != "/w/notes/doc?path=.cairn%2Fcards%2Fbbb222.md" {
		t.Errorf("changing: %d to %q\n%s", status, header.Get("Location"), body)
	}
	text, err := os.ReadFile(filepath.Join(root, ".cairn/cards/bbb222.md"))
	if err != nil || !strings.Contains(string(text), "title: Paint it red") || !strings.Contains(string(text), "status: active") {
		t.Errorf("the card is %s, %v", text, err)
	}
	if status, _, body := post(h, own, "/cards/aaa111", url.Values{"status": {"done"}}, fragmentHeader, "board"); status != http.StatusNoContent {
		t.Errorf("moving: %d %s", status, body)
	}
	for _, c := range []struct {
		origin, target string
		form           url.Values
		status         int
		want           string
	}{
		{"http://elsewhere.example", "/cards", url.Values{"title": {"Spam"}}, 403, "Forms from other sites are refused."},
		{"null", "/cards", url.Values{"title": {"Spam"}}, 403, "Forms from other sites are refused."},
		{own, "/cards", url.Values{"title": {""}}, 400, "title is empty"},
		{own, "/cards/zzz999", url.Values{"status": {"done"}}, 404, "Task Not Found"},
		{own, "/cards/aaa111", url.Values{"status": {"flying"}}, 400, "want {todo,active,done,archived}"},
		{own, "/cards/aaa111", url.Values{"depends_on": {"bbb222"}}, 400, "Remove dependency"},
		{own, "/cards/aaa111", url.Values{"colour": {"red"}}, 400, "unknown key"},
		{own, "/cards", url.Values{"title": {strings.Repeat("x", maxForm)}}, 400, "cannot be read"},
	} {
		status, _, body := post(h, c.origin, c.target, c.form)
		if status != c.status || !strings.Contains(body, c.want) || !strings.Contains(body, `href="/w/notes/index"`) {
			t.Errorf("%s from %s: %d, want %d with %q in\n%s", c.target, c.origin, status, c.status, c.want, body)
		}
	}
	h.site.MayWrite = func(*http.Request) bool { return false }
	if status, _, body := post(h, own, "/cards", url.Values{"title": {"Read"}}); status != 403 || !strings.Contains(body, "no changes of cards") {
		t.Errorf("a reader: %d\n%s", status, body)
	}
	if status, _, body := post(h, own, "/cards/aaa111", url.Values{"status": {"todo"}}, fragmentHeader, "board"); status != 403 || body != "Your access permits reading, but no changes of cards.\n" {
		t.Errorf("the script of a reader: %d\n%s", status, body)
	}
	if _, _, board := get(t, h, "/tasks"); strings.Contains(board, "card-form") || strings.Contains(board, "draggable") || strings.Contains(board, "Spam") {
		t.Errorf("a reader's board:\n%s", board)
	}
}

// TestLongColumn: a board shows the first cards of a column and counts the others.
func TestLongColumn(t *testing.T) {
	h, root := folder(t) // which has a card that is done
	for i := range maxColumn + 30 {
		card := fmt.Sprintf("---\ntitle: Card %d\nstatus: done\nordinal: %d\n---\n", i, i)
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf(".cairn/cards/d%05d.md", i)), []byte(card), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, _, board := get(t, h, "/tasks")
	for _, want := range []string{fmt.Sprintf("done <small>%d</small>", maxColumn+31), `data-card="d00199"`, `data-next="d00200"`, "31 further cards"} {
		if !strings.Contains(board, want) {
			t.Errorf("the board has no %q", want)
		}
	}
	if strings.Contains(board, `data-card="d00200"`) {
		t.Errorf("the board shows more than %d cards of a column", maxColumn)
	}
	if _, _, board := get(t, h, "/tasks?text=d00229"); !strings.Contains(board, `data-card="d00229"`) {
		t.Error("the filter does not find a card that the board omits")
	}
}

// TestConcurrentForms: a form changes the fields that its user changed, and no others.
func TestConcurrentForms(t *testing.T) {
	h, root := folder(t)
	const own, before = "http://example.com", "---\ntitle: Paint it\nstatus: done\npriority: medium\ntags: [\"a, b\"]\n---\n"
	file := filepath.Join(root, ".cairn/cards/bbb222.md")
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	shown := url.Values{"title": {"Paint it"}, "status": {"todo"}, "tags": {"a, b"}, "assignee": {""}, "notes": {""}}
	for key := range maps.Clone(shown) {
		shown["was_"+key] = shown[key]
	}
	change := func(key, value string) (int, string) {
		t.Helper()
		form := maps.Clone(shown)
		form[key] = []string{value}
		status, _, page := post(h, own, "/cards/bbb222", form)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return status, string(text) + page
	}
	if _, _, page := get(t, h, "/doc?path=.cairn/cards/bbb222.md"); !strings.Contains(page, `name="was_status" value="done"`) || !strings.Contains(page, `name="was_tags" value="a, b"`) {
		t.Errorf("the form does not send what it shows:\n%s", page)
	}
	status, text := change("notes", "one\r\ntwo")
	for _, want := range []string{"status: done", `tags: ["a, b"]`, `notes: "one\ntwo"`} {
		if status != http.StatusSeeOther || !strings.Contains(text, want) {
			t.Errorf("notes from a form that shows another status: %d without %s\n%s", status, want, text)
		}
	}
	if status, text := change("status", "active"); status != http.StatusBadRequest || !strings.Contains(text, "status of the card has changed meanwhile to &#34;done&#34;") || !strings.Contains(text, "status: done") {
		t.Errorf("a status that another user changed: %d\n%s", status, text)
	}
	if status, text := change("status", "done"); status != http.StatusSeeOther || !strings.Contains(text, "status: done") {
		t.Errorf("the status that another user chose: %d\n%s", status, text)
	}
}

// TestSteps: the page of a card changes its text and its steps, unless the text has changed.
func TestSteps(t *testing.T) {
	h, root := folder(t)
	const own, body = "http://example.com", "# Draw a plan\n\n```\n- [ ] an example\n```\n\n- [ ] first\n  1. [x] second\n"
	file := filepath.Join(root, ".cairn/cards/ccc333.md")
	send := func(form url.Values) (int, string) {
		status, _, page := post(h, own, "/cards/ccc333", form)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return status, string(text) + page
	}
	if status, text := send(url.Values{"was": {bodyHash("")}, "body": {strings.ReplaceAll(body, "\n", "\r\n")}}); status != http.StatusSeeOther || !strings.Contains(text, "\n"+body) || !strings.Contains(text, "updated: ") {
		t.Fatalf("a new text: %d\n%s", status, text)
	}
	if _, _, page := get(t, h, "/doc?path=.cairn/cards/ccc333.md"); !strings.Contains(page, `<input data-step="0" type="checkbox"`) || !strings.Contains(page, `<input checked="" data-step="1" type="checkbox"`) || !strings.Contains(page, `value="`+bodyHash(body)+`"`) {
		t.Errorf("the page has no steps:\n%s", page)
	}
	if status, text := send(url.Values{"was": {bodyHash(body)}, "step": {"0"}, "done": {"true"}}); status != http.StatusSeeOther || !strings.Contains(text, "- [ ] an example") || !strings.Contains(text, "- [x] first") || !strings.Contains(text, "1. [x] second") {
		t.Errorf("the first step: %d\n%s", status, text)
	}
	if status, text := send(url.Values{"was": {bodyHash(body)}, "step": {"1"}, "done": {"false"}}); status != http.StatusBadRequest || !strings.Contains(text, "has changed meanwhile") || !strings.Contains(text, "1. [x] second") {
		t.Errorf("a step of an earlier text: %d\n%s", status, text)
	}
	h.site.MayWrite = func(*http.Request) bool { return false }
	if _, _, page := get(t, h, "/doc?path=.cairn/cards/ccc333.md"); strings.Contains(page, "data-step") || strings.Contains(page, "<textarea") {
		t.Errorf("a reader's page:\n%s", page)
	}
}

// TestDrift: the page compares on demand, and its form writes a verdict that the next
// comparison knows.
func TestDrift(t *testing.T) {
	h, root := folder(t)
	if err := os.WriteFile(filepath.Join(root, "broken.md"), []byte("# Broken\n\nSee [it](nowhere.md).\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	page := func(target string) string {
		t.Helper()
		if status, _, _ := get(t, h, target); status != http.StatusSeeOther {
			t.Fatal(status)
		}
		for t.Context().Err() == nil {
			_, header, body := get(t, h, "/drift")
			if header.Get("Refresh") == "" {
				return body
			}
			runtime.Gosched()
		}
		return ""
	}
	if body := page("/drift?again"); strings.Contains(body, "nowhere.md") {
		t.Error("what no commit proves is shown:\n" + body)
	}
	body := page("/drift?again&all=on")
	_, id, _ := strings.Cut(body, `nowhere.md does not exist</a>`)
	_, id, _ = strings.Cut(id, `name="id" value="`)
	id, _, _ = strings.Cut(id, `"`)
	const own = "http://example.com"
	for _, tt := range []struct {
		origin, id, verdict, reason string
		status                      int
	}{
		{own, id, "ignored", " ", http.StatusBadRequest},
		{own, id, "none", "x", http.StatusBadRequest},
		{own, "0123", "ignored", "x", http.StatusBadRequest},
		{"http://evil.example", id, "ignored", "x", http.StatusForbidden},
		{own, id, "ignored", "it comes later", http.StatusSeeOther},
	} {
		if status, _, body := post(h, tt.origin, "/drift", url.Values{"id": {tt.id}, "verdict": {tt.verdict}, "reason": {tt.reason}}); status != tt.status {
			t.Errorf("%+v: %d\n%s", tt, status, body)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, ".cairn/drift.txt")); err != nil || !strings.Contains(string(text), "ignored "+id+" broken.md: link") {
		t.Errorf("the verdict is %q, %v", text, err)
	}
	if body := page("/drift?again&all=on"); strings.Contains(body, "nowhere.md") || !strings.Contains(body, "1 ignored") {
		t.Error(body)
	}
}
