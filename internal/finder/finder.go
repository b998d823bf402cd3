// Package finder lets a person at a terminal choose one of many places by typing
// part of its name, with a preview of the text there. It does not open the place.
package finder

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"
)

// Place is a place that can be chosen.
type Place struct {
	Kind string `json:"kind"` // file, heading or card
	Path string `json:"path"` // workspace path
	Line int    `json:"line"` // from 1
	// Text is what is matched and shown, on one line.
	Text string `json:"text"`
}

// Model is the state of the finder. It is a tea.Model.
type Model struct {
	places  []Place
	preview func(Place) string
	filter  string
	matches []fuzzy.Match // of places, the best first
	at      int           // index of the selected one in matches
	top     int           // index of the first one shown
	width   int
	height  int

	chosen *Place
}

// maxFilter bounds the filter in characters.
const maxFilter = 200

// New returns a finder over places. preview returns the text from a place on; it
// is called only for the selected one.
func New(places []Place, preview func(Place) string) *Model {
	m := &Model{places: places, preview: preview, width: 80, height: 24}
	m.match()
	return m
}

// Chosen returns the chosen place, nil for none.
func (m *Model) Chosen() *Place { return m.chosen }

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return nil }

type source []Place

func (s source) String(i int) string { return s[i].Text }
func (s source) Len() int            { return len(s) }

func (m *Model) match() {
	m.at, m.top = 0, 0
	if m.filter == "" {
		m.matches = m.matches[:0]
		for i := range m.places {
			m.matches = append(m.matches, fuzzy.Match{Index: i, Str: m.places[i].Text})
		}
		return
	}
	m.matches = fuzzy.FindFrom(m.filter, source(m.places))
	// The order of equal scores is that of the places.
	slices.SortStableFunc(m.matches, func(a, b fuzzy.Match) int {
		if a.Score != b.Score {
			return b.Score - a.Score
		}
		return a.Index - b.Index
	})
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.PasteMsg:
		m.Narrow(m.filter + msg.Content)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c", "esc":
		return tea.Quit
	case "enter":
		if m.at < len(m.matches) {
			m.chosen = &m.places[m.matches[m.at].Index]
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
			m.Narrow(string(r[:len(r)-1]))
		}
	case "ctrl+u":
		m.Narrow("")
	default:
		if k.Text != "" {
			m.Narrow(m.filter + k.Text)
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

// rows returns how many places fit the screen.
func (m *Model) rows() int { return max(1, m.height-3) }

// minPreview is the width from which on there is a preview.
const minPreview = 70

// View implements tea.Model.
func (m *Model) View() tea.View {
	left, right := m.width, 0
	var preview []string
	if m.width >= minPreview {
		left = m.width / 2
		right = m.width - left - 3
		if m.at < len(m.matches) {
			preview = strings.Split(m.preview(m.places[m.matches[m.at].Index]), "\n")
		}
	}
	var style ansi.Style
	help := fmt.Sprintf("%d of %d  type to narrow the list, up and down to move, enter to open, esc to leave", len(m.matches), len(m.places))
	lines := []string{style.Bold().Styled("> ") + m.filter, style.Faint().Styled(fit(help, m.width))}
	for row := range m.rows() {
		line := ""
		if i := m.top + row; i < len(m.matches) {
			p := m.places[m.matches[i].Index]
			line = fit(fmt.Sprintf("%-7s %s", p.Kind, p.Text), left)
		}
		space := strings.Repeat(" ", left-ansi.StringWidth(line))
		if m.top+row == m.at && line != "" {
			line = style.Reverse(true).Styled(line)
		}
		if right > 0 {
			line += space + " │ "
			if row < len(preview) {
				line += fit(preview[row], right)
			}
		}
		lines = append(lines, line)
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
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

// Narrow lists the places that match filter, of at most maxFilter characters.
func (m *Model) Narrow(filter string) {
	if len([]rune(filter)) <= maxFilter {
		m.filter = filter
		m.match()
	}
}
