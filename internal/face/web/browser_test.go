package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cairn/internal/base/job"
	"cairn/internal/folder/index"
)

// notesAndEmpty serves two workspaces, one with contents and one empty.
func notesAndEmpty(t *testing.T) *http.ServeMux {
	t.Helper()
	pages, _ := folder(t, taught)
	empty, _ := folder(t)
	mux := http.NewServeMux()
	mux.Handle("/w/notes/", http.StripPrefix("/w/notes", pages))
	mux.Handle("/w/empty/", http.StripPrefix("/w/empty", empty))
	return mux
}

// newTab opens a tab until the test ends.
func newTab(t *testing.T, browser context.Context) context.Context {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	if err := chromedp.Run(tab); err != nil { // the tab lives as long as the context of its first run
		t.Fatal(err)
	}
	return tab
}

// doing returns a function that runs actions in a tab and ends the test if one of them fails.
func doing(t *testing.T, tab context.Context) func(what string, actions ...chromedp.Action) {
	return func(what string, actions ...chromedp.Action) {
		t.Helper()
		hanging, cancel := context.WithTimeout(tab, 2*time.Minute)
		defer cancel()
		if err := chromedp.Run(hanging, actions...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// TestBrowser uses the pages in a real Chromium, at the widths of a desktop and a
// phone. The pages must log no error and send no request to another host.
func TestBrowser(t *testing.T) {
	browser := chromium(t)
	mux := notesAndEmpty(t)
	mux.HandleFunc("/plain", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><p>plain`)
	})
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(mux)
	defer server.Close()

	shots := os.Getenv("CAIRN_SCREENSHOTS")
	for _, screen := range []struct {
		name          string
		width, height int64
	}{{"desk", 1280, 800}, {"phone", 390, 780}} {
		t.Run(screen.name, func(t *testing.T) {
			tab := newTab(t, browser)
			faults := faultsOf(tab, server.URL)
			do := doing(t, tab)
			run := func(what string, actions ...chromedp.Action) {
				t.Helper()
				do(what, actions...)
				if shots != "" {
					var png []byte
					if err := chromedp.Run(tab, chromedp.CaptureScreenshot(&png)); err == nil {
						_ = os.WriteFile(filepath.Join(shots, screen.name+"-"+what+".png"), png, 0o644) // an artefact, not the test
					}
				}
				var wide bool
				if err := chromedp.Run(tab, poll(`document.documentElement !== null`), chromedp.Evaluate(`document.documentElement.scrollWidth > window.innerWidth`, &wide)); err != nil || wide {
					t.Errorf("%s: the page is wider than the screen (%v)", what, err)
				}
			}
			at := func(path string) chromedp.Action { return chromedp.Navigate(server.URL + "/w/notes" + path) }
			text := func(selector, want string) chromedp.Action {
				return poll(`(document.querySelector(` + quote(selector) + `)||{textContent:""}).textContent.includes(` + quote(want) + `)`)
			}
			run("search", log.Enable(), network.Enable(), runtime.Enable(), emulation.SetDeviceMetricsOverride(screen.width, screen.height, 1, false), at("/"), chromedp.WaitVisible(".find [name=q]"))
			var before, entries int
			run("home", text(".home", "guide/"), text(".home", "Start here"), chromedp.Evaluate(`history.length`, &before))
			run("typing", chromedp.SendKeys(".find [name=q]", "revoke"), poll(`location.search === "?q=revoke"`), text("#results mark", "revoke"), chromedp.SendKeys(".find [name=q]", " a key"), poll(`location.search === "?q=revoke+a+key"`))
			run("typed", text("#results mark", "revoke"), text("a.hit", "Part two"), poll(`document.title.startsWith("revoke a key – notes")`), chromedp.Evaluate(`history.length`, &entries))
			if entries != before+1 {
				t.Errorf("one search is %d entries of the history, want 1", entries-before)
			}
			run("forth and back", chromedp.NavigateBack(), text(".home", "guide/"), poll(`document.querySelector(".find [name=q]").value === ""`), chromedp.NavigateForward(), text("a.hit", "Part two"), poll(`document.querySelector(".find [name=q]").value === "revoke a key"`))
			run("mode", chromedp.Click(`.chip[href*="mode=keyword"]`, chromedp.ByQuery), text(".count", "with these words"), text(".chips", "words only ×"), poll(`document.readyState === "complete"`))
			run("why", chromedp.Click(".why summary", chromedp.ByQuery), chromedp.WaitVisible(".bars rect.bar", chromedp.ByQuery))
			run("escape", chromedp.Focus(".find [name=q]"), chromedp.KeyEvent(kb.Escape), poll(`document.activeElement === document.body && document.querySelector(".find [name=q]").value === "revoke a key"`))
			run("composing", chromedp.Focus(".find [name=q]"), poll(`(document.querySelector(".find [name=q]").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", isComposing: true, bubbles: true, cancelable: true })), document.activeElement.name === "q")`))
			run("down", chromedp.Focus(".find [name=q]"), chromedp.KeyEvent(kb.ArrowDown), poll(`document.activeElement.className === "hit"`), chromedp.Evaluate(`document.activeElement.blur()`, nil))
			if screen.width > 1200 {
				run("preview", poll(`document.querySelector(".preview .path").textContent === "other.md" && document.querySelector(".preview h2").textContent === "Part two" && document.querySelector("article.selected") !== null`))
			}
			run("keys", chromedp.KeyEvent("j"), poll(`document.activeElement.className === "hit"`), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("article.document"), text("h1", "Other"), poll(`location.hash === "#part-two"`))
			run("slash", poll(`document.readyState === "complete" && document.querySelector(".find [name=q]").value === "revoke a key"`), chromedp.KeyEvent("/"), poll(`document.activeElement.name === "q"`))
			run("results", chromedp.Click(".back a", chromedp.ByQuery), chromedp.WaitVisible("a.hit"), text("a.hit", "Part two"))
			run("filters", at("/?q=part"), text("#results", "Part of the guide"), chromedp.Click(`.chip[href*="in=guide"]`, chromedp.ByQuery), text(".chips", "guide/ ×"), poll(`document.querySelector("input[name=in]").value === "guide/"`))
			run("further results", at("/?cursor=&q=wall"), chromedp.Focus(".find [name=q]"), chromedp.Evaluate(`document.activeElement.blur()`, nil), poll(`location.search === "?cursor=&q=wall"`))
			run("all folders", at("/?q=revoke"), text("a.hit", "Part two"), chromedp.Evaluate(`document.querySelector(".chip[href*='all=yes']").click()`, nil), text("#results", "empty · other.md"), text(".count", "in all folders"))
			run("picture", at("/doc?path=guide/start.md"), poll(`document.querySelector(".document img").naturalWidth === 1`))
			var open bool
			run("outline", at("/doc?path=other.md"), chromedp.Evaluate(`(() => { const d = document.querySelector(".outline details"); const was = d.open; d.open = true; return was; })()`, &open), chromedp.Click(`.outline a[href="#part-two"]`, chromedp.ByQuery), poll(`location.hash === "#part-two"`))
			if open != (screen.width > 960) {
				t.Errorf("the sections are open: %v on a screen of %d pixels", open, screen.width)
			}
			run("symbol", at("/?q=how+high+the+wall+is&kind=code"), poll(`document.querySelector("a.hit[href$='#Height']") !== null`), chromedp.Evaluate(`document.querySelector("a.hit[href$='#Height']").click()`, nil), poll(`location.hash === "#Height" && getComputedStyle(document.querySelector(".line.marked")).backgroundColor !== "rgba(0, 0, 0, 0)"`), text(".outline", "wide"))
			run("wrapped", poll(`document.getElementById("line:9").clientHeight > 1.5 * document.getElementById("line:4").clientHeight || innerWidth > 1200`))
			run("uses", chromedp.KeyEvent("u"), text(".uses", "1 definition of Height"), text(".uses", "src/use.go"), chromedp.KeyEvent(kb.Escape), poll(`document.querySelector(".uses").hidden`))
			run("pointed", chromedp.Evaluate(`(() => { const line = document.getElementById("line:9"); line.scrollIntoView({ block: "center" }); const range = document.createRange(); range.setStart(line.childNodes[2], 2); range.setEnd(line.childNodes[2], 3); const box = range.getBoundingClientRect(); line.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: box.x, clientY: box.y + box.height / 2 })); })()`, nil), text(".uses", "1 definition of wide"))
			run("copy", at("/doc?path=other.md"), chromedp.Click("button.copy", chromedp.ByQuery), text(".announced", "other.md"))
			run("formulas", at("/doc?path=kinds.md"), poll(`document.querySelectorAll("code.math math mi").length > 2 && document.querySelector(".math.display mfrac") !== null`), text(".document", "1 comment of this document is not shown"))
			run("own names", chromedp.KeyEvent(kb.Escape), poll(`["preview", "uses"].every(id => { const heading = document.getElementById(id); return heading.checkVisibility() && heading.textContent.toLowerCase() === id; })`))
			run("diagram", poll(`document.querySelectorAll(".document .graph .box").length === 2 && document.querySelector(".graph path.arrow").getTotalLength() > 20`), text(".graph", "again"))
			run("copy code", chromedp.Click(".code .copy", chromedp.ByQuery), text(".announced", "the code"))
			run("hostile", at("/doc?path=hostile.md"), text("h2", "Rotate a token"))
			run("tasks", at("/tasks"), text(".board", "Paint it"), text(".board", "Draw a plan"), chromedp.WaitVisible(".graph svg rect", chromedp.ByQuery), chromedp.WaitVisible(".graph path.arrow", chromedp.ByQuery))
			run("card", chromedp.Click(`.graph a`, chromedp.ByQuery), chromedp.WaitVisible("article.document"), text(".where", "aaa111.md"))
			run("drag", at("/tasks"), chromedp.Evaluate(`(() => {
	const dataTransfer = new DataTransfer();
	const drag = (type, el) => el.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
	const card = document.querySelector("[data-card=aaa111]");
	drag("dragstart", card); drag("dragover", document.querySelector("[data-status=active]")); drag("drop", document.querySelector("[data-status=active]"));
})()`, nil), poll(`document.querySelector("[data-status=active] [data-card=aaa111]") !== null`))
			order := func(want string) chromedp.Action {
				return poll(`document.readyState === "complete" && [...document.querySelectorAll("[data-status=todo] [data-card]")].map(c => c.dataset.card).join(" ").startsWith("` + want + `")`)
			}
			run("placed", chromedp.Evaluate(`(() => {
	const dataTransfer = new DataTransfer();
	const drag = (type, el, clientY) => el.dispatchEvent(new DragEvent(type, { dataTransfer, clientY, bubbles: true, cancelable: true }));
	const to = document.querySelector("[data-card=bbb222]");
	const { top, bottom } = to.getBoundingClientRect();
	drag("dragstart", document.querySelector("[data-card=aaa111]")); drag("dragover", to, top + 2); drag("drop", to, top + 2);
})()`, nil), order("aaa111 bbb222"))
			run("lowered", poll(`document.activeElement.closest("[data-card=aaa111]") !== null`), chromedp.KeyEvent(kb.ArrowDown, chromedp.KeyModifiers(input.ModifierAlt)), order("bbb222 aaa111"), poll(`document.activeElement.closest("[data-card=aaa111]") !== null`))
			run("raised", chromedp.Evaluate(`(() => { const s = document.querySelector("[data-card=aaa111] .move select"); s.value = "up"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`, nil), order("aaa111 bbb222"), at("/tasks"), order("aaa111 bbb222"))
			var chosen string
			run("picker", chromedp.Focus("[data-card=bbb222] .move select", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowDown), chromedp.Evaluate(`document.querySelector("[data-card=bbb222] .move select").value`, &chosen), chromedp.KeyEvent(kb.Escape))
			if chosen != "todo" {
				t.Errorf("the arrow key chose the status %s", chosen)
			}
			run("moved", chromedp.Evaluate(`(() => { const s = document.querySelector("[data-card=bbb222] .move select"); s.value = "archived"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`, nil), poll(`document.readyState === "complete" && document.querySelector("[data-card=bbb222]") === null`),
				chromedp.Navigate(server.URL+"/w/notes/doc?path=.cairn/cards/bbb222.md"), chromedp.SetValue(".edit select[name=status]", "todo", chromedp.ByQuery), chromedp.Submit(".edit form", chromedp.ByQuery), text(".fields", "todo"))
			run("long tag", at("/tasks"), chromedp.Evaluate(`document.querySelector(".filter select").add(new Option("x".repeat(300)))`, nil))
			run("filter", at("/tasks"), chromedp.SetValue(".filter [name=text]", "paint", chromedp.ByQuery), chromedp.Submit(".filter", chromedp.ByQuery), poll(`location.search.includes("paint") && document.querySelectorAll("[data-card]").length === 1`))
			run("text", at("/doc?path=.cairn/cards/bbb222.md"), chromedp.SetValue("textarea.text", "- [ ] one step", chromedp.ByQuery), chromedp.Submit("textarea.text", chromedp.ByQuery), poll(`document.readyState === "complete" && document.querySelector("[data-step]") !== null`))
			run("step", chromedp.Evaluate(`document.querySelector("[data-step]").click()`, nil), poll(`document.readyState === "complete" && document.querySelector("[data-step]").defaultChecked`),
				chromedp.Evaluate(`(() => { const text = document.querySelector("textarea.text"); text.value = ""; text.form.submit(); })()`, nil), poll(`document.readyState === "complete" && document.querySelector("[data-step]") === null`))
			run("edited", at("/doc?path=.cairn/cards/aaa111.md"), chromedp.Click(".edit summary", chromedp.ByQuery), chromedp.SetValue(".edit select[name=status]", "todo", chromedp.ByQuery), chromedp.SetValue(".edit input[name=assignee]", "Ann "+screen.name, chromedp.ByQuery), chromedp.Submit(".edit form", chromedp.ByQuery), text(".fields", "Ann "+screen.name), text(".fields", "todo"))
			run("created", at("/tasks"), chromedp.Click(".new summary", chromedp.ByQuery), chromedp.SendKeys(".new input[name=title]", "Made "+screen.name, chromedp.ByQuery), chromedp.Submit(".new form", chromedp.ByQuery), text("[data-status=todo]", "Made "+screen.name))
			run("tools", at("/tools"), chromedp.WaitVisible("svg.together circle", chromedp.ByQuery), text("svg.together", "mail:send_mail"))
			run("suggest", chromedp.SendKeys("#intent", "read a file, translate it and send it by mail"), chromedp.Click("main button[type=submit]", chromedp.ByQuery), chromedp.WaitVisible(".graph svg rect", chromedp.ByQuery), text("ol.steps", "send_mail"), chromedp.WaitVisible(".graph path.arrow", chromedp.ByQuery), chromedp.WaitVisible("svg.together circle", chromedp.ByQuery))
			run("around", chromedp.Click(`svg.together a[href$="mail%3Asend_mail"]`, chromedp.ByQuery), text("main", "Only around"))
			run("nothing imported", chromedp.Navigate(server.URL+"/w/empty/tools"), text("main", "No tools are imported"))
			run("index", at("/index"), text("dl", "ready"), chromedp.WaitVisible("polyline", chromedp.ByQuery), text("main", "Skipped"), text("main", "95 % within"))
			var light, dark string
			const paper = `getComputedStyle(document.body).backgroundColor`
			run("theme", chromedp.Evaluate(paper, &light), chromedp.Click(".theme"), poll(`["dark","light"].includes(document.documentElement.dataset.theme)`), chromedp.Evaluate(paper, &dark))
			if light == dark {
				t.Errorf("the theme leaves the background %s", light)
			}
			var unnamed []string
			run("labels", at("/?q=key"), text("a.hit", "Part"), chromedp.Evaluate(`[...document.querySelectorAll("input:not([type=hidden]),button,a")].filter(e => !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute("aria-label")).map(e => e.outerHTML)`, &unnamed))
			if len(unnamed) > 0 {
				t.Errorf("without a name: %q", unnamed)
			}
			// A page of one word measures what this machine takes for any page.
			paint := func(path string) float64 {
				best := math.Inf(1)
				for range 5 {
					var ms float64
					if err := chromedp.Run(tab, chromedp.Navigate(server.URL+path), pollInto(`performance.getEntriesByName("first-contentful-paint").map(e => e.startTime)[0]`, &ms)); err != nil {
						t.Fatalf("painting %s: %v", path, err)
					}
					best = min(best, ms)
				}
				return best
			}
			plain, search := paint("/plain"), paint("/w/notes/")
			t.Logf("first paint: a page of one word %.0f ms, the search page %.0f ms, the best of 5 each", plain, search)
			if search > 20*plain {
				t.Errorf("the search page takes %.0f ms to its first paint, a page of one word %.0f", search, plain)
			}
			for _, s := range faults() {
				t.Error(s)
			}
		})
	}
}

// TestMedia: at 400 % the bar hides no target, and a page is printed as a document, in light
// colours. The direction of a title does not reach the path after it, and a paragraph has the
// direction of its text.
func TestMedia(t *testing.T) {
	browser := chromium(t)
	server := httptest.NewServer(notesAndEmpty(t))
	defer server.Close()
	tab := newTab(t, browser)
	var bidi, light, printed string
	var right bool
	var below, hidden bool
	const ink = `getComputedStyle(document.body).color`
	if err := chromedp.Run(tab, emulation.SetDeviceMetricsOverride(320, 256, 1, false), chromedp.Navigate(server.URL+"/w/notes/doc?path=kinds.md#deepest"), poll(`document.querySelector(":target") !== null && scrollY > 0`),
		chromedp.Evaluate(`document.querySelector(":target").getBoundingClientRect().top >= document.querySelector("header").getBoundingClientRect().bottom`, &below),
		chromedp.Evaluate(`getComputedStyle(document.querySelector(".tree a")).unicodeBidi`, &bidi),
		chromedp.Evaluate(`(() => { const p = document.querySelector(".document p:not(.where)"), range = document.createRange(); p.textContent = "שלום!"; range.selectNodeContents(p); const text = range.getBoundingClientRect(), box = p.getBoundingClientRect(); return text.left - box.left > box.right - text.right; })()`, &right),
		chromedp.Evaluate(`document.documentElement.dataset.theme = "light"; `+ink, &light),
		emulation.SetEmulatedMedia().WithMedia("print"), chromedp.Evaluate(`document.documentElement.dataset.theme = "dark"; `+ink, &printed),
		chromedp.Evaluate(`!document.querySelector("header").checkVisibility() && !document.querySelector(".side").checkVisibility() && document.querySelector("h1").checkVisibility()`, &hidden)); err != nil {
		t.Fatal(err)
	}
	if !right {
		t.Error("a paragraph in Hebrew begins at the left")
	}
	if !below || !hidden || bidi != "isolate" || printed != light {
		t.Errorf("target below the bar %v, bar and lists hidden in print %v, direction %q, ink %s in print, want %s", below, hidden, bidi, printed, light)
	}
}

// TestParts: a link to a place of a long document opens the part that has the place.
func TestParts(t *testing.T) {
	browser := chromium(t)
	h, root := folder(t)
	const line = "A line of a text that is too long for one page.\n"
	text := "# Long\n"
	for i := range 4 {
		text += fmt.Sprintf("\n## Section %d\n\n%s", i, strings.Repeat(line, 1000))
	}
	for name, text := range map[string]string{"long.md": text, "long.txt": strings.Repeat(line, 4500)} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := index.IndexOp.Call(t.Context(), h.site.Folder, index.IndexRequest{}, func(job.Progress) {}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/w/notes/", http.StripPrefix("/w/notes", h))
	server := httptest.NewServer(mux)
	defer server.Close()
	run := doing(t, newTab(t, browser))
	at := func(path string) chromedp.Action { return chromedp.Navigate(server.URL + "/w/notes" + path) }
	const target = `(document.querySelector(":target")||{textContent:""}).textContent`
	run("anchor", at("/doc?path=long.md#section-3"), poll(`document.readyState === "complete" && `+target+` === "Section 3"`))
	run("first part", chromedp.Evaluate(`[...document.querySelectorAll("article a")].find(a => a.textContent === "first part").click()`, nil), poll(`document.querySelector("#section-0") !== null`))
	run("nowhere", at("/doc?path=long.md#nowhere"), poll(`location.search.includes("at=nowhere") && document.querySelector("#section-0") !== null`))
	run("line", at("/doc?path=long.txt#line:4300"), poll(`document.readyState === "complete" && (document.querySelector(":target")||{id:""}).id === "line:4300"`))
	run("marked line", at("/doc?path=long.txt&line=4300"), poll(`document.querySelector(".marked .no[href=\"#line:4300\"]") !== null`))
}

// TestRefusals: the script shows why a request has no answer, leaves the page as it is, and shows
// how to sign in again.
func TestRefusals(t *testing.T) {
	browser := chromium(t)
	pages := notesAndEmpty(t)
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch code := int(status.Load()); {
		case code == 0:
			pages.ServeHTTP(w, r)
		case r.Header.Get(fragmentHeader) != "":
			w.WriteHeader(code)
			fmt.Fprint(w, `{"message":"not now"}`)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>Sign in</title>`)
		}
	}))
	defer server.Close()
	tab := newTab(t, browser)
	run := doing(t, tab)
	const move = `(() => { const s = document.querySelector("[data-card=aaa111] .move select"); s.value = "done"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`
	typed := func(query string) chromedp.Action {
		return chromedp.Evaluate(`(() => { const q = document.querySelector(".find [name=q]"); q.value = `+quote(query)+`; q.dispatchEvent(new Event("input")); })()`, nil)
	}
	run("board", chromedp.Navigate(server.URL+"/w/notes/tasks"), poll(`document.querySelector("[data-card=aaa111]") !== null`))
	status.Store(http.StatusTooManyRequests)
	run("refused move", chromedp.Evaluate(move, nil), poll(`document.querySelector(".announced").textContent === "not now" && document.querySelector("[data-card=aaa111] .move select").value === "todo"`))
	status.Store(0)
	run("search", chromedp.Navigate(server.URL+"/w/notes/?q=revoke"), poll(`document.querySelector("#results a.hit") !== null`))
	status.Store(http.StatusTooManyRequests)
	run("refused search", typed("revoke a key"), poll(`document.querySelector(".announced").textContent === "not now" && document.querySelector("#results a.hit") !== null`))
	status.Store(0)
	run("tried again", chromedp.Evaluate(`document.querySelector(".find").requestSubmit()`, nil), poll(`document.querySelector("#results a.hit").href.includes("revoke%2Ba%2Bkey&")`))
	run("previewed", emulation.SetDeviceMetricsOverride(1280, 800, 1, false), chromedp.Navigate(server.URL+"/w/notes/?q=part"), poll(`document.querySelector(".preview").textContent !== "" && document.querySelectorAll("a.hit[data-part]").length > 1`))
	status.Store(http.StatusNotFound)
	focus := func(hit int) chromedp.Action {
		return chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll("a.hit[data-part]")[%d].focus()`, hit), nil)
	}
	run("refused preview", focus(1), poll(`document.querySelector(".announced").textContent === "not now" && document.querySelector(".preview").textContent === ""`))
	status.Store(0)
	run("answered preview", chromedp.Evaluate(`document.activeElement.blur()`, nil), focus(1), poll(`document.querySelector(".preview").textContent !== ""`))
	run("answered search", typed("revoke a key again"), poll(`document.querySelector(".announced").textContent === "" && location.search === "?q=revoke+a+key+again"`))
	status.Store(http.StatusUnauthorized)
	run("signed out", typed("revoke a key x"), poll(`document.title === "Sign in"`))
}

// faultsOf records the exceptions and logged errors of a tab, and its requests to another server
// than own, and returns a function that lists them.
func faultsOf(tab context.Context, own string) func() []string {
	var mu sync.Mutex
	var bad []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		bad = append(bad, s)
	}
	chromedp.ListenTarget(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			note("exception: " + e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				note("logged: " + e.Entry.Text + " " + e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, own) && !strings.HasPrefix(e.Request.URL, "data:") {
				note("asked for " + e.Request.URL)
			}
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(bad)
	}
}

// chromium starts a browser until the test ends, and skips the test without one.
func chromium(t *testing.T) context.Context {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium on this machine")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	browser, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser)
	if err := chromedp.Run(browser); err != nil {
		t.Skipf("Chromium does not start here: %v", err)
	}
	return browser
}

// poll waits until an expression is true. It evaluates the expression again if
// the page changes meanwhile.
func poll(js string) chromedp.Action { return pollInto(js, nil) }

// pollInto is poll and stores the value.
func pollInto(js string, value any) chromedp.Action {
	gone := regexp.MustCompile(`Cannot find context|context was destroyed|target navigated`)
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			if err := chromedp.Poll(js, value).Do(ctx); err == nil || !gone.MatchString(err.Error()) {
				return err
			}
		}
	})
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
