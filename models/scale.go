package models

import (
	"context"
	"fmt"
)

// unrelated contains questions and texts on different subjects.
var unrelated = [][2]string{
	{"how do I restart a database server", "Bake the dough for half an hour until the crust is brown."},
	{"when do swallows fly south", "The court dismissed the appeal for want of evidence."},
	{"solve a quadratic equation", "The train to the harbour leaves every twenty minutes."},
	{"who painted the ceiling", "Set the environment variable before you start the program."},
	{"symptoms of a cold", "Interest is paid into the account at the end of each quarter."},
	{"repair a flat tyre", "The orchestra tuned while the audience took their seats."},
}

// Baseline returns e's mean cosine of a question and a text on different subjects. It is
// near 0 for some models and above .5 for others.
func Baseline(ctx context.Context, e Embedder) (float64, error) {
	var texts []string
	for _, pair := range unrelated {
		texts = append(texts, pair[1])
	}
	documents, err := e.EmbedDocuments(ctx, texts)
	if err != nil {
		return 0, fmt.Errorf("measuring the scale of similarities: %w", err)
	}
	sum := 0.0
	for _, pair := range unrelated {
		query, err := e.EmbedQuery(ctx, pair[0])
		if err != nil {
			return 0, fmt.Errorf("measuring the scale of similarities: %w", err)
		}
		for _, d := range documents {
			for i, x := range query {
				sum += float64(x) * float64(d[i])
			}
		}
	}
	return min(max(sum/float64(len(unrelated)*len(unrelated)), 0), .95), nil
}

// NearEnough returns the cosine at or below which a document without a matching keyword
// is not an answer. It is MinSimilarity or, if that is not set, the value of
// all-MiniLM-L6-v2 on the scale of the model.
func (d Description) NearEnough() float64 {
	if d.MinSimilarity != 0 || d.Unrelated == 0 {
		return d.MinSimilarity
	}
	return d.Unrelated + .3*(1-d.Unrelated)
}
