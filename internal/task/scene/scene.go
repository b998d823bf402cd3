// Package scene collects the documents of the current work as one Markdown text to paste into
// a conversation: the active cards first, then the documents they refer to, and so on, up to
// a number of tokens, with secrets masked. It follows references and does not search.
package scene

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/internal/text/convert"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
)

// Request describes the scene to build.
type Request struct {
	// Paths are the workspace paths of the documents, sorted.
	Paths []string
	// Read returns a document and the time of its last change.
	Read func(path string) (text []byte, changed time.Time, err error)
	// Cards lists the paths of the active cards.
	Cards []string
	// Working lists further documents in use. They are in the scene even if no card refers to
	// them, and timesWorking multiplies their weight.
	Working []string
	// Global lists the documents of every scene.
	Global []string
	// TokenLimit bounds the tokens, counted before masking.
	TokenLimit int
	// Count counts tokens.
	Count func(text string) int
	// Masks are the patterns of secrets; nil masks nothing.
	Masks *secret.Masks
	// Now is the time of the scene.
	Now time.Time
}

// weights are the weights of documents by the number of references between them and an active
// card.
var weights = []float64{100, 50, 25}

const (
	weightOther = 10 // of a document further away, or global
	// The factors of the weight.
	timesToday    = 2
	timesWorking  = 1.5
	maxDepth      = 8 // of followed references
	maxReferences = 100
)

// Item is a document of the scene.
type Item struct {
	Path   string  `json:"path"`
	Weight float64 `json:"weight"`
	Depth  int     `json:"depth"` // references from an active card; -1 from none
	Tokens int     `json:"tokens"`
	Hash   string  `json:"hash"` // the first eight digits of its SHA-256
	// Included is false for a document that does not fit.
	Included bool `json:"included"`

	text    []byte
	changed time.Time
}

// Scene is the text and the documents in it.
type Scene struct {
	Items  []Item `json:"items"` // the heaviest first
	Tokens int    `json:"tokens"`
	Limit  int    `json:"token_limit"`
	// Truncated is set if a document does not fit.
	Truncated bool `json:"truncated"`
	// Masked is the number of masked secrets.
	Masked int    `json:"masked"`
	Text   string `json:"text,omitempty"`
}

// truncated marks the place where the limit was reached.
const truncated = "> [!WARNING] Context Truncated here...\n"

// Build builds a scene. It omits unreadable documents.
func Build(r Request) *Scene {
	items := collect(r)
	slices.SortStableFunc(items, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Path, b.Path))
	})
	out := &Scene{Limit: r.TokenLimit, Items: []Item{}}
	head := fmt.Sprintf("# Scene Context\n\nMade %s.\n", r.Now.UTC().Format(time.RFC3339))
	tokens := r.Count(head) + r.Count(footer(r.TokenLimit, r.TokenLimit, len(items))) + r.Count(truncated)
	var b strings.Builder
	b.WriteString(head)
	included := 0
	for _, i := range items {
		text := i.render()
		if n := r.Count(text); !out.Truncated && tokens+n <= r.TokenLimit {
			b.WriteString(text)
			tokens += n
			i.Included = true
			included++
		} else if !out.Truncated {
			// The first document that does not fit ends the scene, because a document of
			// less weight must not replace it.
			b.WriteString("\n" + truncated)
			out.Truncated = true
		}
		out.Items = append(out.Items, *i)
	}
	out.Tokens = tokens
	b.WriteString(footer(tokens, r.TokenLimit, included))
	text, masked := r.Masks.Mask([]byte(b.String()))
	out.Text, out.Masked = string(text), masked
	return out
}

func footer(tokens, limit, documents int) string {
	return fmt.Sprintf("\n---\n\n%d tokens of %d in %d documents.\n", tokens, limit, documents)
}

// collect follows references from the cards, the nearest first.
func collect(r Request) []*Item {
	// A card exists even if it is not indexed.
	places := markdown.NewPlaces(slices.Values(slices.Concat(r.Paths, r.Cards)))
	seen := map[string]*Item{}
	var items []*Item
	add := func(p string, depth int) {
		if seen[p] != nil {
			return
		}
		text, changed, err := r.Read(p)
		if err != nil {
			return
		}
		sum := sha256.Sum256(text)
		i := &Item{Path: p, Depth: depth, Tokens: r.Count(string(text)), Hash: hex.EncodeToString(sum[:4]), text: text, changed: changed}
		i.Weight = weight(i, r)
		seen[p] = i
		items = append(items, i)
	}
	for _, c := range r.Cards {
		add(c, 0)
	}
	for at := 0; at < len(items); at++ {
		if i := items[at]; i.Depth < maxDepth {
			for _, p := range references(i.Path, i.text, places) {
				add(p, i.Depth+1)
			}
		}
	}
	for _, p := range slices.Concat(r.Working, r.Global) {
		add(p, -1)
	}
	return items
}

func weight(i *Item, r Request) float64 {
	w := float64(weightOther)
	if 0 <= i.Depth && i.Depth < len(weights) {
		w = weights[i.Depth]
	}
	y, m, d := i.changed.In(r.Now.Location()).Date()
	if ny, nm, nd := r.Now.Date(); y == ny && m == nm && d == nd {
		w *= timesToday
	}
	if slices.Contains(r.Working, i.Path) {
		w *= timesWorking
	}
	return w
}

// references returns the documents that a document refers to, in the order of the text: by
// links, wiki links and "@" references.
func references(from string, text []byte, places *markdown.Places) []string {
	var paths []string
	for _, t := range markdown.Targets(from, text) {
		to, ok := places.Find(from, t)
		if !ok { // paths in cards often begin at the root
			raw, _, _ := strings.Cut(t.Raw, "#")
			to, _ = places.Find(from, markdown.Target{Path: raw})
		}
		if to != "" && to != from && !slices.Contains(paths, to) && len(paths) < maxReferences {
			paths = append(paths, to)
		}
	}
	return paths
}

// render returns the text of a document in the scene. Its fence is longer than any fence in the
// text.
func (i *Item) render() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%d tokens, %s\n", i.Path, i.Tokens, i.Hash)
	d := markdown.Parse(i.Path, i.text)
	for _, s := range d.Sections {
		if s.Level > 0 {
			fmt.Fprintf(&b, "- line %d: #%s\n", s.StartLine, s.Anchor)
		}
	}
	fence := convert.Fence(string(i.text))
	fmt.Fprintf(&b, "\n%smarkdown\n%s\n%s\n", fence, strings.TrimRight(string(i.text), "\n"), fence)
	return b.String()
}
