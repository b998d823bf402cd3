package web

import (
	"html/template"
	"net/http"
	"regexp"
	"strconv"

	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/retriever"
)

// namesPage lists where a name of source code is defined and used.
type namesPage struct {
	Name        string
	Definitions []definition
	Uses        []fileUses
	Total       int    // of lines with the name
	Reason      string // why lines are missing
}

// definition is a symbol with the name.
type definition struct{ Path, Anchor, Signature string }

// fileUses are the lines of a file that contain the name.
type fileUses struct {
	Path  string
	Lines []codeLine
}

// maxUses bounds the lines of namesPage.
const maxUses = 200

// maxName is the maximum length of a name in bytes.
const maxName = 400

var (
	nameRule = regexp.MustCompile(`^[\pL_$][\pL\pN_$]*$`)
	// repeated matches the end of an anchor of a further symbol with the same name.
	repeated = regexp.MustCompile(`-\d+$`)
)

// names finds the definitions of a name in the outlines of the index, and its uses in the files.
func (h *Handler) names(w http.ResponseWriter, r *http.Request) error {
	p := &namesPage{Name: r.URL.Query().Get("name")}
	if len(p.Name) > maxName || !nameRule.MatchString(p.Name) {
		return &retriever.InvalidError{Field: "name", Reason: strconv.Quote(p.Name) + " is no name of source code"}
	}
	answer, err := h.site.Scan(r.Context(), scan.Request{Pattern: `(^|[^\pL\pN_$])` + regexp.QuoteMeta(p.Name) + `($|[^\pL\pN_$])`, Regexp: true, Kind: store.Code, MaxLines: maxUses})
	if err != nil {
		return err
	}
	p.Total, p.Reason = answer.Total, answer.Reason
	for _, found := range answer.Found {
		path := found.Path
		if last := len(p.Uses) - 1; last < 0 || p.Uses[last].Path != path {
			p.Uses = append(p.Uses, fileUses{Path: path})
		}
		use := &p.Uses[len(p.Uses)-1]
		line := linesOf(path, scan.Cut(found.Text), found.Number, view.Marker{})[0]
		line.Link = template.URL(place(h.site.Prefix(r), path, "line:"+strconv.Itoa(found.Number)))
		use.Lines = append(use.Lines, line)
	}
	for _, use := range p.Uses {
		list, err := index.DocumentsOp.Call(r.Context(), h.site.Folder, index.DocumentsRequest{Prefix: use.Path, Limit: 1, Outline: true}, nil)
		if err != nil {
			return err
		}
		for _, d := range list.Documents {
			for _, s := range d.Outline {
				if d.Path == use.Path && repeated.ReplaceAllString(s.Anchor, "") == p.Name {
					p.Definitions = append(p.Definitions, definition{d.Path, s.Anchor, s.Heading})
				}
			}
		}
	}
	return h.show(w, r, page{Section: "names", Title: p.Name, fragment: "names", Data: p})
}
