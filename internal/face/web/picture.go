package web

import (
	"net/http"
	"path"
	"strings"

	"cairn/internal/folder/workspace"
)

// pictureType returns the media type of a picture by its extension, or "" for other files.
func pictureType(name string) string { return workspace.Pictures[strings.ToLower(path.Ext(name))] }

// picturePolicy keeps an SVG picture that is opened by itself from running scripts and
// loading files.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// picture sends a picture of the folder, unless it is hidden or ignored.
func (h *Handler) picture(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("path")
	kind := pictureType(name)
	if kind == "" || h.site.Tasks == nil {
		h.unknown(w, r)
		return
	}
	content, err := h.site.Tasks.Picture(r.Context(), name)
	if err != nil {
		h.unknown(w, r)
		return
	}
	if found := http.DetectContentType(content); kind != "image/svg+xml" && found != kind {
		h.unknown(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", picturePolicy)
	header.Set("Content-Type", kind)
	header.Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(content) // the client may have left
}
