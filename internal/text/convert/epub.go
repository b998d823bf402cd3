package convert

import (
	"net/url"
	"path"
)

// EPUB converts a book: its title, then its chapters in reading order.
func EPUB(w *writer, data []byte) error {
	const container = "META-INF/container.xml"
	a := openArchive(w, data, container)
	opf := ""
	for x := a.xml(container); opf == "" && x.find("rootfile"); {
		opf = x.attr("full-path")
	}
	if a.files[opf] == nil {
		return errBroken
	}
	titled := false
	items := map[string]string{}
	read := map[string]bool{}
	for x := a.xml(opf); x.next(); {
		switch {
		case x.start == "title" && !titled:
			w.heading(1, x.textUntil("title"), "")
			titled = len(w.out) > 0
		case x.start == "item" && (x.attr("media-type") == "application/xhtml+xml" || x.attr("media-type") == "text/html") && x.attr("properties") != "nav":
			if href, err := url.PathUnescape(x.attr("href")); err == nil {
				items[x.attr("id")] = path.Join(path.Dir(opf), href)
			}
		case x.start == "itemref":
			name := items[x.attr("idref")]
			if name == "" || read[name] {
				continue
			}
			read[name] = true
			if err := writePage(w, a.read(name), 1); err != nil {
				return err
			}
		}
	}
	return nil
}
