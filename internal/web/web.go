package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/toolbox"
	"cairn/internal/workspace"
	"cairn/retriever"
	"cairn/tools"
)

// Sources are the contents of the pages. The caller closes them.
type Sources struct {
	// Name is the name of the workspace.
	Name string
	// Engine is required.
	Engine tools.Engine
	// Tasks and Toolbox may be nil; their pages are then not found.
	Tasks   *workspace.Tasks
	Toolbox *toolbox.Toolbox
}

// Options configure New. Nil and the zero value mean the defaults.
type Options struct {
	// Prefix returns the prefix of links in the answer to a request, such as
	// "/w/notes". Nil means none.
	Prefix func(*http.Request) string
	// Logger receives errors; nil is silent.
	Logger *slog.Logger
}

//go:embed templates assets
var embedded embed.FS

// Handler serves the pages of one workspace. It is safe for concurrent use.
type Handler struct {
	sources   Sources
	options   Options
	mux       *http.ServeMux
	patterns  []string // of mux
	templates *template.Template
	took      latencies
}

// New returns the handler of a workspace's pages. It fails only if a template is
// invalid.
func New(s Sources, o *Options) (*Handler, error) {
	h := &Handler{sources: s, mux: http.NewServeMux()}
	if o != nil {
		h.options = *o
	}
	if h.options.Prefix == nil {
		h.options.Prefix = func(*http.Request) string { return "" }
	}
	if h.options.Logger == nil {
		h.options.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	h.templates, err = template.New("").Funcs(template.FuncMap{
		"marked": marked, "percent": percent, "place": place,
	}).ParseFS(embedded, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	assets, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	for pattern, page := range map[string]http.HandlerFunc{
		"GET /{$}":     h.search,
		"GET /doc":     h.doc,
		"GET /tasks":   h.tasks,
		"GET /tools":   h.toolPage,
		"GET /index":   h.index,
		"GET /assets/": http.StripPrefix("/assets/", http.FileServerFS(assets)).ServeHTTP,
	} {
		h.mux.HandleFunc(pattern, page)
		h.patterns = append(h.patterns, pattern)
	}
	return h, nil
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
	header.Set("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(r.URL.Path, "/assets/") {
		header.Set("Cache-Control", "public, max-age=3600")
	}
	h.mux.ServeHTTP(w, r)
}

// page is the input of every template.
type page struct {
	Prefix, Workspace, Title, Section string
	HasTasks, HasTools                bool
	Data                              any
}

// show renders a page, or only its fragment if htmx asks for that.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, status int, section, title, fragment string, data any) {
	p := page{
		Prefix: h.options.Prefix(r), Workspace: h.sources.Name, Title: title, Section: section,
		HasTasks: h.sources.Tasks != nil, HasTools: h.sources.Toolbox != nil, Data: data,
	}
	name := section + ".html"
	if fragment != "" && r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-History-Restore-Request") != "true" {
		name = fragment
	}
	var b bytes.Buffer // so that an error does not follow half a page
	if err := h.templates.ExecuteTemplate(&b, name, p); err != nil {
		h.options.Logger.Error("rendering a page", "page", name, "error", err)
		http.Error(w, "this page could not be rendered; the server's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "HX-Request")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the client may have left
}

// fail shows an error, with its status and the nearest paths.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var nearest []string
	if missing, ok := errors.AsType[*retriever.NotFoundError](err); ok {
		status, nearest = http.StatusNotFound, missing.Nearest
	} else if _, ok := errors.AsType[*retriever.InvalidError](err); ok {
		status = http.StatusBadRequest
	} else {
		h.options.Logger.Error("answering a page", "path", r.URL.Path, "error", err)
	}
	h.show(w, r, status, "error", "That did not work", "", struct {
		Message string
		Nearest []string
	}{err.Error(), nearest})
}

// place returns the link to a place in the reader.
func place(prefix, path, anchor string) string {
	out := prefix + "/doc?path=" + url.QueryEscape(path)
	if anchor != "" {
		out += "#" + url.PathEscape(anchor)
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%.0f", 100*v) }
