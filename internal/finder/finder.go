// Package finder is a full-screen list of places to go to, narrowed down by
// typing, with the text of the chosen one beside it. It opens nothing itself: it
// says what was chosen.
package finder

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/sahilm/fuzzy"

	_ "cairn/internal/finder/dark" // before Bubble Tea is initialised
)

// Place is something that can be chosen.
type Place struct {
	Kind string // file, heading or card
	Path string // workspace path
	Line int    // from 1
	// Text is what is matched and shown, on one line.
	Text string
}

// Model is the state of the finder. It is a tea.Model.
type Model struct {
	places  []Place
	preview func(Place) string
	filter  string
	matches []fuzzy.Match // of places, the best first
	at      int           // in matches
	top     int           // the first one shown
	width   int
	height  int

	chosen *Place
}

// maxFilter is how many characters are matched.
const maxFilter = 200

// New returns a finder over places. preview returns the text around one; it is
// called for what is shown only.
func New(places []Place, preview func(Place) string) *Model {
	m := &Model{places: places, preview: preview, width: 80, height: 24}
	m.match()
	return m
}

// Chosen is what was chosen; nil when nothing was.
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
	// Equal scores keep the order of the places, whatever the sort did.
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
	case tea.KeyMsg:
		return m, m.key(msg)
	}
	return m, nil
}

func (m *Model) key(k tea.KeyMsg) tea.Cmd {
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
			m.filter = string(r[:len(r)-1])
			m.match()
		}
	case "ctrl+u":
		m.filter = ""
		m.match()
	default:
		if k.Type == tea.KeyRunes || k.Type == tea.KeySpace {
			if r := append([]rune(m.filter), k.Runes...); len(r) <= maxFilter {
				m.filter = string(r)
				m.match()
			}
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

// rows is how many places are shown.
func (m *Model) rows() int { return max(1, m.height-3) }

var (
	bold = lipgloss.NewStyle().Bold(true)
	dim  = lipgloss.NewStyle().Faint(true)
	here = lipgloss.NewStyle().Reverse(true)
)

// narrow is the width below which there is no preview.
const narrow = 70

// View implements tea.Model.
func (m *Model) View() string {
	left, right := m.width, 0
	if m.width >= narrow {
		left = m.width / 2
		right = m.width - left - 3
	}
	var list []string
	for i := m.top; i < len(m.matches) && i < m.top+m.rows(); i++ {
		p := m.places[m.matches[i].Index]
		line := fit(fmt.Sprintf("%-7s %s", p.Kind, p.Text), left)
		if i == m.at {
			line = here.Render(line)
		}
		list = append(list, line)
	}
	body := lipgloss.NewStyle().Width(left).Height(m.rows()).Render(strings.Join(list, "\n"))
	if right > 0 && m.at < len(m.matches) {
		var text []string
		for line := range strings.Lines(m.preview(m.places[m.matches[m.at].Index])) {
			text = append(text, fit(strings.TrimRight(line, "\n"), right))
			if len(text) == m.rows() {
				break
			}
		}
		body = lipgloss.JoinHorizontal(lipgloss.Top, body, " │ ", strings.Join(text, "\n"))
	}
	count := fmt.Sprintf("%d of %d", len(m.matches), len(m.places))
	help := "type to narrow down, up and down, enter opens, esc leaves"
	return bold.Render("> ") + m.filter + "\n" + dim.Render(fit(count+"  "+help, m.width)) + "\n" + body
}

// fit makes a line of at most width cells, without control characters.
func fit(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	for lipgloss.Width(s) > width && s != "" {
		r := []rune(s)
		over := lipgloss.Width(s) - width
		s = string(r[:max(0, len(r)-max(1, over/2))])
	}
	return s
}

// Run shows the finder on the terminal and returns what was chosen; nil when
// nothing was.
func Run(m *Model, options ...tea.ProgramOption) (*Place, error) {
	if _, err := tea.NewProgram(m, append(options, tea.WithAltScreen())...).Run(); err != nil {
		return nil, err
	}
	return m.chosen, nil
}

// Narrow sets what has been typed.
func (m *Model) Narrow(filter string) {
	m.filter = filter
	m.match()
}
