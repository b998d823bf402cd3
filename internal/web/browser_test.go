package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowser uses the pages in a real Chromium, at the width of a desk and of
// a phone: nothing may be logged as an error, and nothing asked of another host.
func TestBrowser(t *testing.T) {
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
	pages, _ := folder(t)
	mux := http.NewServeMux()
	mux.Handle("/w/notes/", http.StripPrefix("/w/notes", pages))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(mux)
	defer server.Close()

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	browser, closeBrowser := chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Run(browser); err != nil {
		t.Skipf("Chromium does not start here: %v", err)
	}
	shots := os.Getenv("CAIRN_SCREENSHOTS")
	for _, screen := range []struct {
		name          string
		width, height int64
	}{{"desk", 1280, 800}, {"phone", 360, 740}} {
		t.Run(screen.name, func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(browser)
			defer closeTab()
			tab, cancel := context.WithTimeout(tab, 2*time.Minute)
			defer cancel()
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
					if !strings.HasPrefix(e.Request.URL, server.URL) && !strings.HasPrefix(e.Request.URL, "data:") {
						note("asked for " + e.Request.URL)
					}
				}
			})
			run := func(what string, actions ...chromedp.Action) {
				t.Helper()
				if err := chromedp.Run(tab, actions...); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if shots != "" {
					var png []byte
					if err := chromedp.Run(tab, chromedp.CaptureScreenshot(&png)); err == nil {
						_ = os.WriteFile(filepath.Join(shots, screen.name+"-"+what+".png"), png, 0o644) // an artefact, not the test
					}
				}
				var wide bool
				if err := chromedp.Run(tab, chromedp.Evaluate(`document.documentElement.scrollWidth > window.innerWidth`, &wide)); err != nil || wide {
					t.Errorf("%s: the page is wider than the screen (%v)", what, err)
				}
			}
			at := func(path string) chromedp.Action { return chromedp.Navigate(server.URL + "/w/notes" + path) }
			text := func(selector, want string) chromedp.Action {
				return chromedp.Poll(`(document.querySelector(`+quote(selector)+`)||{textContent:""}).textContent.includes(`+quote(want)+`)`, nil)
			}
			run("search", log.Enable(), network.Enable(), runtime.Enable(), emulation.SetDeviceMetricsOverride(screen.width, screen.height, 1, false), at("/"), chromedp.WaitVisible("#q"))
			run("typed", chromedp.SendKeys("#q", "revoke a key"), text("#results mark", "revoke"), text("a.hit", "Part two"))
			run("mode", chromedp.Click(`input[value=keyword]`), text(".count", "keyword"))
			run("why", chromedp.Click("details summary"), chromedp.WaitVisible(".bars rect.bar", chromedp.ByQuery))
			run("keys", chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent("j"), chromedp.Poll(`document.activeElement.className === "hit"`, nil), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("article.document"), text("h1", "Other"), chromedp.Poll(`location.hash === "#part-two"`, nil))
			run("back", chromedp.NavigateBack(), chromedp.WaitVisible("a.hit"), text("a.hit", "Part two"))
			run("hostile", at("/doc?path=hostile.md"), text("h2", "Rotate a token"))
			run("tasks", at("/tasks"), text(".board", "Paint it"), chromedp.WaitVisible(".graph svg rect", chromedp.ByQuery))
			run("tools", at("/tools"), text("main", "catalogue is empty"))
			run("index", at("/index"), text("dl", "ready"), chromedp.WaitVisible("polyline", chromedp.ByQuery))
			run("theme", chromedp.Click("#theme"), chromedp.Poll(`["dark","light"].includes(document.documentElement.dataset.theme)`, nil))
			var unnamed []string
			run("labels", at("/?q=key"), text("a.hit", "Part"), chromedp.Evaluate(`[...document.querySelectorAll("input,button,a")].filter(e => !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute("aria-label")).map(e => e.outerHTML)`, &unnamed))
			if len(unnamed) > 0 {
				t.Errorf("without a name: %q", unnamed)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range bad {
				t.Error(s)
			}
		})
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
