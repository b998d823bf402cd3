// Package dark keeps the terminal from being asked for the colour of its
// background. Importing it is enough.
//
// Bubble Tea 1 asks when it is initialised, in every process that contains it
// and whatever the command: an escape sequence on the terminal, and up to 15
// seconds without an answer on one that knows no such question, as below
// expect, on a serial line or in an agent's shell. Its answer would choose
// between colours for dark and for light backgrounds, of which we have none.
package dark

import "github.com/charmbracelet/lipgloss"

// A package is initialised as soon as what it imports is, the first by import
// path before others (Go specification, "Program initialization"). Ours
// comes before Bubble Tea's, whose question is then answered already.
func init() { lipgloss.SetHasDarkBackground(true) }
