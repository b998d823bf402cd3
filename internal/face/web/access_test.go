package web

import (
	"context"
	_ "embed"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed testdata/audit.js
var audit string

// audited is the result of audit.js for a page.
type audited struct {
	Texts, Shapes, Controls int // measured
	Wrong                   []string
}

// TestAccessible checks every page for WCAG 2.2, AA, as far as a browser can, in
// both colour schemes and at the widths of a desktop and a phone.
func TestAccessible(t *testing.T) {
	browser := chromium(t)
	server := httptest.NewServer(notesAndEmpty(t))
	defer server.Close()
	var measured audited
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%s %d", scheme, width), func(t *testing.T) {
				tab := newTab(t, browser)
				prefers := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
				if err := chromedp.Run(tab, emulation.SetDeviceMetricsOverride(width, 800, 1, false), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{prefers})); err != nil {
					t.Fatal(err)
				}
				for _, page := range []string{
					"/w/notes/",
					"/w/notes/?q=rotate+a+token",
					"/w/notes/?q=revoke+key&in=nowhere/",
					"/w/notes/?in=guide/",
					"/w/notes/?q=part&tag=kinds",
					"/w/notes/?q=" + fmt.Sprintf("%04001d", 0), // too long
					"/w/notes/doc?path=guide/start.md&from=q%3Dwall",
					"/w/notes/doc?path=.cairn/cards/bbb222.md",
					"/w/notes/nothing", // no page
					"/w/notes/doc?path=other.md",
					"/w/notes/doc?path=kinds.md",
					"/w/notes/doc?path=hostile.md",
					"/w/notes/doc?path=untitled.md",
					"/w/notes/doc?path=notes.txt",
					"/w/notes/doc?path=othe.md", // does not exist
					"/w/notes/doc?path=src/wall.go&line=4#Height",
					"/w/notes/names?name=Height",
					"/w/notes/?q=how+high+the+wall+is&kind=code",
					"/w/notes/tasks",
					"/w/notes/tools?intent=read+a+file,+translate+it+and+send+it+by+mail",
					"/w/notes/graph?around=other.md",
					"/w/notes/tools?around=mail:send_mail",
					"/w/empty/tools",
					"/w/notes/index",
					"/w/notes/drift?again&all",
					"/w/notes/drift",
				} {
					var a audited
					var wide bool
					var nodes []axNode
					if err := chromedp.Run(tab, chromedp.Navigate(server.URL+page), chromedp.WaitVisible("footer"),
						chromedp.KeyEvent(kb.Tab), chromedp.Evaluate("("+audit+")()", &a),
						chromedp.Evaluate(`document.documentElement.scrollWidth > window.innerWidth`, &wide), tree(&nodes)); err != nil {
						t.Fatalf("%s: %v", page, err)
					}
					if dir := os.Getenv("CAIRN_SCREENSHOTS"); dir != "" {
						var png []byte
						name := fmt.Sprintf("%s-%d-%s.png", scheme, width, regexp.MustCompile(`[^a-z]+`).ReplaceAllString(page[:min(len(page), 60)], "-"))
						if err := chromedp.Run(tab, chromedp.Navigate(server.URL+page), chromedp.WaitVisible("footer"), chromedp.CaptureScreenshot(&png)); err == nil {
							_ = os.WriteFile(filepath.Join(dir, name), png, 0o644) // an artefact, not the test
						}
					}
					if wide {
						t.Errorf("%s: wider than the screen", page)
					}
					for _, wrong := range slices.Concat(a.Wrong, wrongNames(nodes)) {
						t.Errorf("%s: %s", page, wrong)
					}
					measured.Texts += a.Texts
					measured.Shapes += a.Shapes
					measured.Controls += a.Controls
				}
				// A theme chosen with the button has the colours of the preferred one.
				var chosen bool
				if err := chromedp.Run(tab, chromedp.Evaluate(`(() => {
	const probe = document.body.appendChild(document.createElement("i"));
	const names = [...document.styleSheets].flatMap(s => [...s.cssRules]).filter(r => r.selectorText === ":root").flatMap(r => [...r.style]).filter(name => name.startsWith("--"));
	const colours = () => names.map(name => { probe.style.color = ""; probe.style.color = "var(" + name + ")"; return getComputedStyle(probe).color; }).join();
	const preferred = colours();
	document.documentElement.dataset.theme = `+quote(scheme)+`;
	const same = preferred === colours();
	document.documentElement.dataset.theme = `+quote(map[string]string{"light": "dark", "dark": "light"}[scheme])+`;
	return names.length > 10 && same && preferred !== colours();
})()`, &chosen)); err != nil || !chosen {
					t.Errorf("the theme %s, where it is preferred, has other colours when it is chosen (%v)", scheme, err)
				}
			})
		}
	}
	t.Logf("%d texts, %d shapes and %d controls measured", measured.Texts, measured.Shapes, measured.Controls)
	if measured.Texts < 1000 || measured.Shapes < 100 || measured.Controls < 500 {
		t.Errorf("measured %d texts, %d shapes and %d controls, of which there are more", measured.Texts, measured.Shapes, measured.Controls)
	}
}

// axNode is a node of the accessibility tree, which screen readers use. The types
// of chromedp refuse properties that are newer than chromedp.
type axNode struct {
	Ignored    bool    `json:"ignored"`
	Role       axValue `json:"role"`
	Name       axValue `json:"name"`
	Properties []struct {
		Name  string  `json:"name"`
		Value axValue `json:"value"`
	} `json:"properties"`
}

type axValue struct {
	Value any `json:"value"`
}

func (n *axNode) property(name string) any {
	for _, p := range n.Properties {
		if p.Name == name {
			return p.Value.Value
		}
	}
	return nil
}

func tree(nodes *[]axNode) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var all struct {
			Nodes []axNode `json:"nodes"`
		}
		err := cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &all)
		*nodes = all.Nodes
		return err
	})
}

// wrongNames lists the nodes without a name, and the headings and landmarks that
// are missing or duplicate.
func wrongNames(nodes []axNode) (wrong []string) {
	roles := map[string]int{}
	titles := 0
	for _, n := range nodes {
		if n.Ignored {
			continue
		}
		role, _ := n.Role.Value.(string)
		name, _ := n.Name.Value.(string)
		roles[role]++
		if role == "heading" && n.property("level") == 1.0 {
			titles++
		}
		if (n.property("focusable") == true || role == "image" || role == "navigation") && name == "" {
			wrong = append(wrong, role+" without a name")
		}
	}
	if titles != 1 {
		wrong = append(wrong, fmt.Sprintf("%d headings of level 1, want one", titles))
	}
	for role, want := range map[string]int{"banner": 1, "main": 1, "contentinfo": 1} {
		if roles[role] != want {
			wrong = append(wrong, fmt.Sprintf("%d landmarks %s, want %d", roles[role], role, want))
		}
	}
	if roles["navigation"] == 0 {
		wrong = append(wrong, "no navigation")
	}
	return wrong
}
