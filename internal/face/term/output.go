package term

import "encoding/json"

// Output is where a command writes: its answer to the embedded Writer, and notes for a person
// to Notes.
type Output struct {
	*Writer
	Notes *Writer
	// JSON selects JSON instead of text for answers.
	JSON bool
}

// Encode writes v as JSON on one line.
func (o *Output) Encode(v any) error {
	enc := json.NewEncoder(o)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Print writes v as JSON, or else calls text. Close returns the errors of text.
func (o *Output) Print(v any, text func()) error {
	if o.JSON {
		return o.Encode(v)
	}
	text()
	return nil
}

// Line writes v as JSON, or else a line of text.
func (o *Output) Line(v any, format string, args ...any) error {
	return o.Print(v, func() { o.Printf(format+"\n", args...) })
}

// Show returns a function for the results of a call. It writes the answer as JSON, or else as
// draw does, and returns the error of the call unchanged.
func Show[V any](o *Output, draw func(*Output, V)) func(V, error) error {
	return func(v V, err error) error {
		if err != nil {
			return err
		}
		return o.Print(v, func() { draw(o, v) })
	}
}

// Warnings writes each line as a warning to Notes.
func (o *Output) Warnings(lines ...string) {
	for _, line := range lines {
		o.Notes.Warn("%s", line)
	}
}
