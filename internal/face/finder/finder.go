// Package finder lets a person at a terminal choose a place by typing part of its name or of
// its meaning, with a preview of the text. It does not open the place.
package finder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"

	"cairn/internal/text/highlight"
)

// Place is a place that can be chosen.
type Place struct {
	Kind string `json:"kind"` // file, heading, symbol, card, or meaning for one that a search found
	Path string `json:"path"` // workspace path
	Line int    `json:"line"` // from 1
	// Text is the text to match, on one line.
	Text string `json:"text"`
	// Name is the part of Text to show first, "" for all of it. Where follows it if there is
	// room.
	Name  string `json:"-"`
	Where string `json:"-"`
}

// Model is the state of the finder. It is a tea.Model.
type Model struct {
	places  []Place
	preview func(Place) string
	search  func(query string) []Place
	filter  string
	typed   int     // number of changes of filter
	found   []Place // by search for filter
	matches []Place // the best first
	at      int     // index of the selected match
	top     int     // index of the first match on the screen
	width   int
	height  int

	chosen *Place
}

// maxFilter bounds the filter in characters.
const maxFilter = 200

// pause is the time without typing before a search.
const pause = 300 * time.Millisecond

// paused is the message after a pause, found the one after a search. typed is the value of
// Model.typed at their beginning.
type (
	paused struct{ typed int }
	found  struct {
		typed  int
		places []Place
	}
)

// New returns a finder over places with a first filter, of at most maxFilter characters. It calls
// preview, which returns the text that begins at a place, only for the selected place. It calls
// search, which returns the places that match the meaning of a query, once after each pause in
// typing, on another goroutine. Calls can overlap. Either function can be nil.
func New(places []Place, filter string, preview func(Place) string, search func(query string) []Place) *Model {
	m := &Model{places: places, width: 80, height: 24, preview: preview, search: search}
	if len([]rune(filter)) <= maxFilter {
		m.filter = filter
	}
	m.match()
	return m
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return m.searchLater() }

// Match returns the places that match a filter, the best first: those with all its words,
// then those with its letters in their order. An empty filter matches all places.
func Match(places []Place, filter string) []Place {
	whole, rest := match(places, filter)
	return slices.Concat([]Place{}, whole, rest)
}

// match returns the places with all words of a filter, and the other matches.
func match(places []Place, filter string) (whole, rest []Place) {
	words := strings.Fields(strings.ToLower(filter))
	if len(words) == 0 {
		return places, nil
	}
	texts := make([]string, len(places))
	for i, p := range places {
		texts[i] = p.Text
	}
	matches := fuzzy.Find(strings.TrimSpace(filter), texts)
	// Equal scores keep the order of the places.
	slices.SortFunc(matches, func(a, b fuzzy.Match) int { return cmp.Or(b.Score-a.Score, a.Index-b.Index) })
	hasAll := func(p Place) bool {
		text := strings.ToLower(p.Text)
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}
	seen := make([]bool, len(places))
	for _, m := range matches {
		if p := places[m.Index]; hasAll(p) {
			whole, seen[m.Index] = append(whole, p), true
		} else {
			rest = append(rest, p)
		}
	}
	for i, p := range places { // the words in another order
		if !seen[i] && len(words) > 1 && hasAll(p) {
			whole = append(whole, p)
		}
	}
	return whole, rest
}

// match lists the places with all words of the filter, then the results of the search,
// then other matches.
func (m *Model) match() {
	whole, rest := match(m.places, m.filter)
	m.matches = slices.Clone(whole)
	for _, p := range m.found {
		if !slices.ContainsFunc(whole, func(w Place) bool { return w.Path == p.Path && w.Line == p.Line }) {
			m.matches = append(m.matches, p)
		}
	}
	m.matches = append(m.matches, rest...)
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.PasteMsg:
		return m, m.narrow(m.filter + msg.Content)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case paused:
		if msg.typed == m.typed {
			query, search := m.filter, m.search
			return m, func() tea.Msg { return found{msg.typed, search(query)} }
		}
	case found:
		if msg.typed == m.typed {
			m.found = msg.places
			m.match()
		}
	}
	return m, nil
}

func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c", "esc":
		return tea.Quit
	case "enter":
		if m.at < len(m.matches) {
			m.chosen = &m.matches[m.at]
		}
		return tea.Quit
	case "up", "ctrl+p", "shift+tab":
		m.move(-1)
	case "down", "ctrl+n", "tab":
		m.move(1)
	case "pgup":
		m.move(-m.rows())
	case "pgdown":
		m.move(m.rows())
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			return m.narrow(string(r[:len(r)-1]))
		}
	case "ctrl+u":
		return m.narrow("")
	default:
		if k.Text != "" {
			return m.narrow(m.filter + k.Text)
		}
	}
	return nil
}

func (m *Model) move(n int) {
	m.at = max(0, min(m.at+n, len(m.matches)-1))
	switch rows := m.rows(); {
	case m.at < m.top:
		m.top = m.at
	case m.at >= m.top+rows:
		m.top = m.at - rows + 1
	}
}

// rows returns the number of places that fit on the screen.
func (m *Model) rows() int { return max(1, m.height-3) }

// minPreview is the minimum width of a screen with a preview.
const minPreview = 70

// View implements tea.Model.
func (m *Model) View() tea.View {
	left, right := m.width, 0
	var preview []string
	if m.width >= minPreview && m.preview != nil {
		left = m.width / 2
		right = m.width - left - 3
		if m.at < len(m.matches) {
			p := m.matches[m.at]
			preview = painted(p.Path, m.preview(p), m.rows(), right)
		}
	}
	var style ansi.Style
	help := fmt.Sprintf("%d of %d  type to narrow the list, up and down to move, enter to open, esc to leave", len(m.matches), len(m.places))
	lines := []string{style.Bold().Styled("> ") + m.filter, style.Faint().Styled(fit(help, m.width))}
	for row := range m.rows() {
		line := ""
		if i := m.top + row; i < len(m.matches) {
			line = m.matches[i].line(left, i == m.at)
		}
		if right > 0 {
			line += strings.Repeat(" ", max(0, left-ansi.StringWidth(line))) + " │ "
			if row < len(preview) {
				line += preview[row]
			}
		}
		lines = append(lines, line)
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// line returns a place in at most width cells, its name first.
func (p Place) line(width int, selected bool) string {
	var style ansi.Style
	name, where := p.Name, p.Where
	name = cmp.Or(name, p.Text)
	kind := fmt.Sprintf("%-7s ", p.Kind)
	name = fit(name, max(0, width-len(kind)))
	where = fit("  "+where, max(0, width-len(kind)-ansi.StringWidth(name)))
	if selected {
		return style.Reverse(true).Styled(fit(kind+name+where, width))
	}
	return fit(kind+name, width) + style.Faint().Styled(where)
}

// colours are the colours of a preview by the kind of text.
var colours = map[highlight.Kind]ansi.Style{
	highlight.Comment:  ansi.Style{}.Faint(),
	highlight.String:   ansi.Style{}.ForegroundColor(ansi.Green),
	highlight.Number:   ansi.Style{}.ForegroundColor(ansi.Magenta),
	highlight.Keyword:  ansi.Style{}.ForegroundColor(ansi.Blue),
	highlight.Heading:  ansi.Style{}.Bold().ForegroundColor(ansi.Cyan),
	highlight.Inserted: ansi.Style{}.ForegroundColor(ansi.Green),
	highlight.Deleted:  ansi.Style{}.ForegroundColor(ansi.Red),
}

// painted returns the first rows of a text in colours, each at most width cells wide.
func painted(path, text string, rows, width int) []string {
	lines := strings.SplitN(text, "\n", rows+1)
	for i := range lines {
		lines[i] = fit(lines[i], len(lines[i])) // without control characters
	}
	lines = lines[:min(rows, len(lines))]
	text = strings.Join(lines, "\n")
	var spans []highlight.Span
	if language := path[strings.LastIndex(path, ".")+1:]; highlight.Known(language) {
		spans = highlight.Code(language, text)
	} else {
		spans = highlight.Markdown(text)
	}
	start := 0
	for i, line := range lines {
		end := start + len(line)
		shown := start + len(fit(line, width))
		var b strings.Builder
		at := start
		for len(spans) > 0 && spans[0].Start < end {
			from, to := max(at, spans[0].Start), min(spans[0].End, shown)
			if from < to {
				b.WriteString(text[at:from] + colours[spans[0].Kind].Styled(text[from:to]))
				at = to
			}
			if spans[0].End > end {
				break // it continues on the next line
			}
			spans = spans[1:]
		}
		lines[i] = b.String() + text[at:max(at, shown)]
		start = end + 1
	}
	return lines
}

// fit returns a line of at most width cells, without control characters.
func fit(s string, width int) string {
	return ansi.Truncate(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s), width, "")
}

// Run shows the finder on the terminal and returns the chosen place, nil for none.
func Run(m *Model, options ...tea.ProgramOption) (*Place, error) {
	if _, err := tea.NewProgram(m, options...).Run(); err != nil {
		return nil, err
	}
	return m.chosen, nil
}

// narrow lists the places that match filter, unless it has more than maxFilter characters.
func (m *Model) narrow(filter string) tea.Cmd {
	if len([]rune(filter)) <= maxFilter {
		m.filter, m.found, m.at, m.top = filter, nil, 0, 0
		m.typed++
		m.match()
	}
	return m.searchLater()
}

// searchLater returns the command that searches after a pause, nil for none.
func (m *Model) searchLater() tea.Cmd {
	if m.search == nil || len(strings.TrimSpace(m.filter)) < 3 {
		return nil
	}
	typed := m.typed
	return tea.Tick(pause, func(time.Time) tea.Msg { return paused{typed} })
}
