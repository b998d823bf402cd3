package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"cairn/cmd/cairn/internal/cli"
)

func (a *app) embedCommand() *cli.Command {
	cmd := cli.NewCommand("embed", "Print a vector for each line of standard input, one JSON object per line",
		a.Command(func(ctx context.Context, _ []string) error {
			model, err := a.Model.Open()
			if err != nil {
				return err
			}
			defer model.Close()
			lines := bufio.NewScanner(a.Stdin)
			lines.Buffer(make([]byte, 64<<10), maxEmbedLine)
			out := bufio.NewWriter(a.Out)
			enc := json.NewEncoder(out)
			for more, read := true, 0; more; {
				var batch []string
				for len(batch) < embedBatch {
					if more = lines.Scan(); !more {
						break
					}
					batch = append(batch, lines.Text())
				}
				read += len(batch)
				vectors, err := model.EmbedDocuments(ctx, batch)
				if err != nil {
					return err
				}
				for _, v := range vectors {
					if err := enc.Encode(struct {
						Vector []float32 `json:"vector"`
					}{v}); err != nil {
						return err
					}
				}
				if err := out.Flush(); err != nil {
					return err
				}
				if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
					return fmt.Errorf("line %d is longer than %d bytes", read+1, maxEmbedLine)
				} else if err != nil && err != io.EOF {
					return fmt.Errorf("reading standard input: %w", err)
				}
			}
			return nil
		}))
	a.AddModel(cmd)
	return cmd
}

const (
	// embedBatch is the number of lines in a batch: enough for all cores, and few enough
	// that output follows input closely.
	embedBatch = 64
	// maxEmbedLine bounds a line in bytes. The model reads only the beginning of a long line.
	maxEmbedLine = 16 << 20
)
