package drift

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"cairn/internal/text/git"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
)

// Bounds of what is read of the history.
const (
	maxPast  = 20_000           // commits
	maxTexts = 512 << 20        // bytes of texts
	dense    = 256              // commits that are compared one by one; then each as many again skip twice as many
	pastTime = 20 * time.Second // of all comparisons
)

// foreign matches the files whose names are mostly those of other projects, or of data.
var foreign = regexp.MustCompile(`(?i)(^|/)(vendor|node_modules|third_party|testdata|fixtures?|tests?|__tests__|spec|specs|examples?|_examples|dist|build|\.github|\.circleci|\.gitlab|ci|benchmarks?|docs?|website|www|demos?|playground|\.husky|\.idea|\.vscode)/|` +
	`(^|/)(\.[^/]*|[^/]*\.lock|package-lock\.json|pnpm-lock\.yaml|go\.sum|[^/]*requirements[^/]*\.txt|appveyor[^/]*|changelog[^/]*|authors[^/]*|contributors[^/]*|license[^/]*|readme[^/]*|[^/]*\.config\.[cm]?[jt]s|[^/]*\.(csv|svg|snap|golden|min\.js|map|ipynb|po|json5?l?))$`)

// evidence is where a name was.
type evidence struct {
	file     git.File
	newer    int // index in the chain of a commit without the name; -1 for the worktree
	older    int // with the name
	name     string
	now      string // the value in its place
	declared bool
	since    *git.Commit // the first without the name; nil if it is not committed
	before   *git.Commit // the last with it
}

// past looks for absent names in the history.
type past struct {
	*folder
	*claimIndex
	chain []*git.Commit // the first parents from head on
	seen  map[git.Hash]bool
	left  int
	size  int // of the texts so far

	outlined git.Hash // the text whose symbols are in symbols
	symbols  []string
}

// claimIndex holds claims by what fulfils them.
type claimIndex struct {
	tokens, places map[string][]*claim
	texts          map[string][]*claim // samples and anchors, by the document that had them
	values         named
}

func newIndex(claims []*claim) *claimIndex {
	x := &claimIndex{map[string][]*claim{}, map[string][]*claim{}, map[string][]*claim{}, named{}}
	for _, c := range claims {
		switch c.kind {
		case Sample:
			x.texts[c.doc] = append(x.texts[c.doc], c)
			continue
		case Anchor:
			x.texts[c.path] = append(x.texts[c.path], c)
			continue
		case Value:
			x.values.add(c)
			continue
		}
		for _, k := range c.keys {
			x.tokens[k] = append(x.tokens[k], c)
		}
		if k := strings.Trim(c.path, "/"); c.path != "" {
			x.places[k] = append(x.places[k], c)
		}
	}
	return x
}

// search sets the evidence of those claims that an earlier commit fulfilled, not later than
// since if it is not nil.
func (p *past) search(ctx context.Context, absent []*claim, since *git.Commit) error {
	p.claimIndex, p.seen, p.left = newIndex(absent), map[git.Hash]bool{}, len(absent)
	for c := p.head; len(p.chain) < maxPast; {
		p.chain = append(p.chain, c)
		if since != nil && (c.Hash == since.Hash || c.Time.Before(since.Time)) || len(c.Parents) == 0 {
			break
		}
		var err error
		if c, err = p.repo.Commit(c.Parents[0]); err != nil {
			break // the end of a shallow clone
		}
	}
	ctx, cancel := context.WithTimeout(ctx, pastTime)
	defer cancel()
	if err := p.look(ctx, p.differ, -1, 0); err != nil {
		return ended(err)
	}
	for i, step := 0, 1; i+1 < len(p.chain) && p.left > 0; {
		if i > 0 && i%dense == 0 && i/dense >= step {
			step *= 2
		}
		next := min(i+step, len(p.chain)-1)
		if next%64 < step {
			p.progress(fmt.Sprintf("Reading commit %d of %d", next, len(p.chain)))
		}
		files, _, err := p.repo.Replaced(p.chain[next], p.chain[i])
		if err == nil {
			err = p.look(ctx, files, i, next)
		}
		if err != nil {
			return ended(err)
		}
		i = next
	}
	return nil
}

// ended returns nil if err is that of a limit, which ends the search of the history.
func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, git.ErrLimit) {
		return nil
	}
	return err
}

// look reads files that the commit newer does not have in this form.
func (p *past) look(ctx context.Context, files []git.File, newer, older int) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(p.places) > 0 {
			for end := range ends(f.Path) {
				for _, c := range p.places[end] {
					// A bare name is that of a file in the root, or in the folder of the document.
					exact := strings.HasPrefix(f.Path+"/", end+"/") || path.Dir(f.Path) == path.Dir(c.doc)
					same := strings.Split(f.Path, "/")[0] == strings.Split(c.doc, "/")[0]
					if c.evidence == nil && (exact || c.kind == Path && strings.Contains(end, "/") && (same || !foreign.MatchString(f.Path))) {
						c.evidence = &evidence{file: f, newer: newer, older: older, name: end, declared: true}
						p.left--
					}
				}
			}
		}
		doc := isDocument(f.Path) && !records.MatchString(f.Path)
		if p.seen[f.Hash] || !isEvidence(f.Path) && !doc {
			continue
		}
		p.seen[f.Hash] = true
		text, err := p.repo.Blob(f.Hash)
		if errors.Is(err, git.ErrLimit) || errors.Is(err, fs.ErrNotExist) {
			continue // it is too large, or a partial clone lacks it
		}
		if err != nil {
			return err
		}
		if p.size += len(text); p.size > maxTexts {
			return git.ErrLimit
		}
		if len(text) > maxFile || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			continue
		}
		for _, c := range p.texts[f.Path] {
			if c.evidence == nil && c.within(text) {
				c.evidence = &evidence{file: f, newer: newer, older: older, declared: true}
			}
		}
		now := sync.OnceValue(func() []byte { // the file today; without an answer it is not there
			text, _ := p.read(f.Path)
			return text
		})
		tokens(text, func(token []byte, at int) {
			for _, c := range p.tokens[string(token)] {
				e, name := c.evidence, string(token)
				if doc || e != nil && (e.declared || e.older != older) {
					continue
				}
				if d := p.declares(c, f, text, name); d > outline.MayDeclare || d > 0 && e == nil {
					c.evidence = &evidence{file: f, newer: newer, older: older, name: name, declared: d > outline.MayDeclare}
					if e == nil {
						p.left--
					}
				}
			}
			p.values.at(text, at, token, doc, func(c *claim) {
				if c.evidence != nil || doc && c.sample {
					return
				}
				if other := c.other(text, at, now(), doc); other != "" && !strings.Contains(c.full, other) {
					c.evidence = &evidence{file: f, newer: newer, older: older, name: string(token), now: other, declared: true}
					p.left--
				}
			})
		})
	}
	return nil
}

// declares returns how certainly the text of a file declares the name of a claim. A name that
// is only used is that of another project.
func (p *past) declares(c *claim, f git.File, text []byte, token string) outline.Declaration {
	name, file := strings.Trim(token, `":-`), f.Path
	id := f.Hash.String() + token
	if c.seen == id {
		return 0
	}
	c.seen = id
	switch {
	case c.kind == Environment:
		return outline.DoesDeclare
	case c.kind == Signature:
		if outline.Declares(text, name) > 0 {
			if has, count := c.takes(file, text); has && count != c.count {
				return outline.DoesDeclare
			}
		}
		return 0
	case !outline.IsSource(file) && !extensions[path.Ext(file)]:
		return 0
	case token != name && !c.sample:
		return outline.DoesDeclare
	case p.outlined != f.Hash:
		p.outlined, p.symbols = f.Hash, nil
		symbols, _ := outline.Outline(file, text)
		for _, s := range symbols {
			if !s.Local {
				p.symbols = append(append(p.symbols, s.Name), s.Names...)
			}
		}
	}
	switch {
	case slices.Contains(p.symbols, name):
		return outline.DoesDeclare
	case c.sample && !distinctive(name) || token != name || strings.Contains(name, "-"):
		return 0
	}
	return outline.Declares(text, name)
}

// date sets the commit that removed the name.
func (p *past) date(c *claim) (err error) {
	e := c.evidence
	last := e.newer + 1 + sort.Search(e.older-e.newer-1, func(i int) (has bool) {
		if err == nil {
			has, err = p.has(p.chain[e.newer+1+i], c)
		}
		return has
	})
	if e.before = p.chain[last]; last > 0 {
		e.since = p.chain[last-1]
	}
	return err
}

// has reports whether a commit has the name of the evidence.
func (p *past) has(c *git.Commit, cl *claim) (bool, error) {
	e := cl.evidence
	text, err := p.content(c, e.file.Path)
	if err != nil || text == nil || cl.kind == Path || cl.kind == Link {
		return text != nil, err
	}
	if cl.kind == Sample || cl.kind == Anchor {
		return cl.within(text), nil
	}
	if cl.kind == Signature {
		takes, _ := cl.takes(e.file.Path, text)
		return takes, nil
	}
	found := false
	tokens(text, func(t []byte, at int) {
		found = found || string(t) == e.name && (cl.kind != Value || slices.Contains(cl.keys, valueAt(text[at:])) && cl.holds(text, at, isDocument(e.file.Path)))
	})
	return found, nil
}

// content returns the content of a file of a commit, nil if there is none.
func (f *folder) content(c *git.Commit, name string) ([]byte, error) {
	h, ok, err := f.repo.Find(c, name)
	if err != nil || !ok {
		return nil, err
	}
	text, err := f.repo.Blob(h)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a partial clone lacks it
	}
	return text, err
}

// stated reports whether the document had the claim while it was true.
func (p *past) stated(c *claim) (bool, error) {
	text, err := p.content(c.evidence.before, c.doc)
	if c.kind == Sample {
		return true, err
	}
	if c.fix != "" {
		return bytes.Contains(text, []byte(strings.TrimSuffix(strings.Fields(c.text)[0], ":"))), err
	}
	if c.past || c.value != "" {
		return bytes.Contains(text, []byte(c.full)), err
	}
	return bytes.Contains(text, []byte(strings.TrimSuffix(c.text, "()"))), err
}

// certain reports whether the evidence of a claim proves it. A common word, or a name that may
// be local, proves it only with another name of the same section in the same file.
func (p *past) certain(c *claim, section []*claim) (bool, error) {
	if c.evidence.declared && (c.kind != Key && c.kind != Symbol && c.kind != Command || distinctive(c.text)) {
		return true, nil
	}
	text, err := p.content(c.evidence.before, c.evidence.file.Path)
	names := map[string]bool{}
	tokens(text, func(t []byte, _ int) { names[string(t)] = true })
	return !c.owned && slices.ContainsFunc(section, func(o *claim) bool {
		return o.text != c.text && o.kind != Value && slices.ContainsFunc(o.keys, func(k string) bool { return names[k] && !strings.Contains(k, c.text) })
	}), err
}

// now returns what replaced the name: the most frequent word in its place in the lines of
// the same file, or the nearest new path.
func (p *past) now(c *claim) (string, error) {
	e := c.evidence
	if c.value != "" {
		return e.now, nil
	}
	if c.path != "" {
		return strings.Join(markdown.Nearest(p.folder.paths, e.file.Path, 1), ""), nil
	}
	before, err := p.content(e.before, e.file.Path)
	if err != nil {
		return "", err
	}
	var after []byte
	if e.since == nil {
		after, _ = p.read(e.file.Path)
	} else if after, err = p.content(e.since, e.file.Path); err != nil {
		return "", err
	}
	name := strings.Trim(e.name, `":`)
	votes := map[string]int{}
	lines := bytes.Split(after, []byte("\n"))
	for line := range bytes.SplitSeq(before, []byte("\n")) {
		at := bytes.Index(line, []byte(name))
		if at < 0 {
			continue
		}
		head, tail := line[:at], line[at+len(name):]
		for _, l := range lines {
			if !bytes.Contains(before, l) && len(l) > len(head)+len(tail) && bytes.HasPrefix(l, head) && bytes.HasSuffix(l, tail) {
				w := string(l[len(head) : len(l)-len(tail)])
				if len(w) < 80 && w != name && strings.IndexFunc(w, func(r rune) bool { return r > 127 || class[r] == 0 }) < 0 {
					votes[w]++
				}
			}
		}
	}
	best := ""
	for _, w := range slices.Sorted(maps.Keys(votes)) {
		if votes[w] > votes[best] {
			best = w
		}
	}
	return best, nil
}
