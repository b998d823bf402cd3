package toolsearch

import (
	"context"
	"errors"
	"slices"

	"cairn/models"
)

// counting is a reader that finds one part and gives logits of 1, as many as it has.
type counting struct{ tagged, read, has int }

func (r *counting) Tag(_ context.Context, lines [][]string) ([]models.Tag, float64, error) {
	r.tagged++
	tags := slices.Repeat([]models.Tag{models.Within}, len(lines[0]))
	tags[0] = models.Begins
	return tags, .5, nil
}

func (r *counting) Rerank(_ context.Context, _ string, texts []string) ([]float64, error) {
	r.read++
	return slices.Repeat([]float64{1}, min(r.has, len(texts))), nil
}

// meeting is an embedder and a reader: the reader waits until the intent is embedded.
type meeting struct {
	models.Embedder
	counting
	intent   string
	embedded chan struct{}
}

func (m *meeting) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if text == m.intent {
		close(m.embedded)
	}
	return m.Embedder.EmbedQuery(ctx, text)
}

func (m *meeting) Tag(ctx context.Context, lines [][]string) ([]models.Tag, float64, error) {
	<-m.embedded
	return m.counting.Tag(ctx, lines)
}

// failing is an embedder that cannot embed queries.
type failing struct{ models.Embedder }

func (failing) EmbedQuery(context.Context, string) ([]float32, error) {
	return nil, errors.New("out of order")
}
