package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"cairn/internal/base/observe"
	"cairn/internal/base/owner"
	"cairn/internal/face/view"
	"cairn/internal/folder/scan"
	"cairn/internal/folder/workspace"
	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/retriever"
)

// Site is a workspace with its pages. The caller closes its parts.
type Site struct {
	// Name is the name of the workspace, and Root its folder.
	Name, Root string
	// Folder runs the operations of the index.
	Folder *owner.Folder
	// Tasks holds its cards, and Toolbox runs the operations of its tools.
	Tasks   *workspace.Tasks
	Toolbox *owner.Folder
	// Prefix returns the prefix of links in the answer to a request, such as "/w/notes".
	Prefix func(*http.Request) string
	// Folders returns the workspaces that the sender of a request may see, each at /w/NAME/.
	Folders func(*http.Request) []Served
	// Scan finds lines of the folder's files.
	Scan func(context.Context, scan.Request) (*scan.Answer, error)
	// MayWrite reports whether the sender of a request may change cards.
	MayWrite func(*http.Request) bool
	// Logger receives errors.
	Logger *slog.Logger
	// Listener receives the stages of searches and readings; nil discards them.
	Listener observe.Listener
	// Lacked is that of tools.Options.
	Lacked func([]string)
}

// Served is a workspace of the server.
type Served struct {
	Name   string
	Folder *owner.Folder
}

//go:embed templates assets
var embedded embed.FS

// templates are the pages, parsed once, because most commands show none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"marked": marked, "percent": percent, "place": place, "ago": ago, "shown": shown,
		"count": view.Count, "kinds": view.Kinds, "trail": view.Trail,
		"day":       func(t time.Time) string { return t.Format("2 January 2006") },
		"join":      func(list []string) string { return strings.Join(list, ", ") },
		"statuses":  func() []string { return cards.Statuses },
		"urgencies": func() iter.Seq2[int, string] { return slices.Backward(cards.Priorities) },
	}).ParseFS(embedded, "templates/*.html"))
})

// assets are the files that the pages load.
var assets = http.FileServerFS(embedded)

// Handler serves the pages of one workspace. It is safe for concurrent use.
type Handler struct {
	site     Site
	mux      *http.ServeMux
	patterns []string // of mux
	took     latencies
	shelf    shelf
	radar    radar
}

// New returns the handler of a workspace's pages.
func New(s Site) *Handler {
	h := &Handler{site: s, mux: http.NewServeMux()}
	for pattern, page := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":         h.search,
		"GET /doc":         h.doc,
		"GET /picture":     h.picture,
		"GET /names":       h.names,
		"GET /graph":       h.graph,
		"GET /tasks":       h.tasks,
		"POST /cards":      h.createCard,
		"GET /tools":       h.toolPage,
		"GET /index":       h.index,
		"GET /drift":       h.drift,
		"POST /drift":      h.judge,
		"POST /cards/{id}": h.changeCard,
		"/":                func(http.ResponseWriter, *http.Request) error { return errNoPage },
	} {
		h.handle(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := page(w, r); err != nil {
				h.fail(w, r, err)
			}
		})
	}
	h.handle("GET /assets/", assets.ServeHTTP)
	return h
}

func (h *Handler) handle(pattern string, page http.HandlerFunc) {
	h.mux.HandleFunc(pattern, page)
	h.patterns = append(h.patterns, pattern)
}

// Patterns returns the patterns under which to mount the Handler, in no order.
func (h *Handler) Patterns() []string { return slices.Clone(h.patterns) }

// policy lets a page load only the embedded files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer a browser would not name this page in the Origin of its forms.
	header.Set("Referrer-Policy", "same-origin")
	if strings.HasPrefix(r.URL.Path, "/assets/") {
		header.Set("Cache-Control", "public, max-age=3600")
	}
	h.mux.ServeHTTP(w, r.WithContext(observe.With(r.Context(), h.site.Listener)))
}

// page is a page to show, and the input of its template.
type page struct {
	Section, Title string
	Query          string // in the search field of the header
	Data           any
	status         int    // 0 means 200
	fragment       string // the template that answers a request of the page's script; "" for none

	// The following fields are set by show.
	Prefix, Workspace string
	Folders           []chip // of all workspaces if there are several
	MayWrite          bool
}

// fragmentHeader is the header with which the script requests a fragment of a page.
const fragmentHeader = "Cairn-Fragment"

// show renders a page, or its fragment for the script. It returns nil, for the end of a handler.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, p page) error {
	p.Prefix, p.Workspace, p.MayWrite = h.site.Prefix(r), h.site.Name, h.site.MayWrite(r)
	if names := h.site.Folders(r); len(names) > 1 {
		for _, f := range names {
			link := template.URL("/w/" + f.Name + "/")
			if slices.Contains([]string{"tasks", "tools", "drift", "index"}, p.Section) {
				link += template.URL(p.Section)
			}
			p.Folders = append(p.Folders, chip{Label: f.Name, Link: link, Set: f.Name == h.site.Name})
		}
	}
	name := p.Section + ".html"
	if p.fragment != "" && r.Header.Get(fragmentHeader) != "" {
		name = p.fragment
	}
	var b bytes.Buffer // so that an error does not follow half a page
	if err := templates().ExecuteTemplate(&b, name, p); err != nil {
		h.site.Logger.Error("rendering a page", "page", name, "error", err)
		http.Error(w, "this page could not be rendered; the server's log has the reason", http.StatusInternalServerError)
		return nil
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", fragmentHeader)
	w.WriteHeader(cmp.Or(p.status, http.StatusOK))
	_, _ = b.WriteTo(w) // the client may have left
	return nil
}

// errorPage is the data of the page for an error.
type errorPage struct {
	Message string
	Nearest []string // paths of documents
}

// errNoPage is the error for an address without a page.
var errNoPage = errors.New("no such page")

// statusError is an error that the sender of a request has made.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }

// fail answers with the page for an error, its status and the nearest paths. The script of the
// pages receives the message.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := page{Section: "error", Title: "That did not work", status: http.StatusInternalServerError}
	e := errorPage{Message: err.Error()}
	if err == errNoPage {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.NotFound(w, r)
			return
		}
		v.status, v.Title, v.Query, e.Message = http.StatusNotFound, "Not found", words(r.URL.Path), fmt.Sprintf("There is no page at %s.", r.URL.Path)
	} else if wrong, ok := errors.AsType[*statusError](err); ok {
		v.status = wrong.status
	} else if missing, ok := errors.AsType[*retriever.NotFoundError](err); ok {
		v.status, v.Title, e.Nearest = http.StatusNotFound, "Not found", missing.Nearest
		v.Query = words(r.URL.Query().Get("path"))
	} else if stale, ok := errors.AsType[*retriever.StaleError](err); ok {
		v.status, e.Message, e.Nearest = http.StatusConflict, "The document has changed since its first part was shown. Open it again.", []string{stale.Path}
	} else if _, ok := errors.AsType[*retriever.InvalidError](err); ok {
		v.status = http.StatusBadRequest
	} else if refused, ok := errors.AsType[*task.Error](err); ok {
		v.status, e.Message = http.StatusBadRequest, refused.Explain()
		if refused.Number == task.CodeNotFound {
			v.status, v.Title = http.StatusNotFound, "Not found"
		}
	} else {
		h.site.Logger.Error("answering a page", "path", r.URL.Path, "error", err)
	}
	if r.Header.Get(fragmentHeader) != "" {
		http.Error(w, e.Message, v.status)
		return
	}
	v.Data = e
	_ = h.show(w, r, v)
}

// words returns the words of a path as a query.
func words(path string) string {
	path = strings.TrimSuffix(path, ".md")
	return strings.Join(strings.FieldsFunc(path, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
}

// place returns the link to a place in the reader. Further pairs of a name and a value are in
// its query, except for empty values.
func place(prefix, path, anchor string, further ...string) string {
	out := prefix + "/doc?"
	for pair := range slices.Chunk(further, 2) {
		if pair[1] != "" {
			out += pair[0] + "=" + url.QueryEscape(pair[1]) + "&"
		}
	}
	out += "path=" + url.QueryEscape(path)
	if anchor != "" {
		out += "#" + url.PathEscape(anchor)
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.0f", 100*v) }
