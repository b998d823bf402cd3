package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
)

// maxDescription is the maximum size of a file that describes a model, in bytes.
const maxDescription = 1 << 16

// ErrPooling reports that no file in a model's folder specifies the pooling.
var ErrPooling = errors.New(`no file specifies how to pool the vectors of the tokens: copy modules.json and 1_Pooling/config.json from where the model is published, or write {"pooling":"mean"} or {"pooling":"cls"} to cairn.json`)

// ReadDescription reads the description of the model in folder dir from the files that
// sentence-transformers writes (modules.json and the pooling module in it,
// sentence_bert_config.json, config_sentence_transformers.json), and then from cairn.json,
// where all fields of Description are optional. Without a name in cairn.json, Name is the
// name of the folder. An unknown field of cairn.json is an error, since a misspelt setting
// would give wrong vectors. Pooling is "" if no file specifies it, since a guess could
// give wrong vectors, too.
func ReadDescription(dir string) (d Description, err error) {
	if err := d.readLayout(dir); err != nil {
		return Description{}, err
	}
	if _, err := readJSON(dir, "cairn.json", &d, true); err != nil {
		return Description{}, err
	}
	if d.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return Description{}, fmt.Errorf("reading model description: %w", err)
		}
		d.Name = filepath.Base(abs)
	}
	return d, nil
}

// WithID returns d with its ID set. digest is the SHA-256, in hex, of the weights
// followed by the tokenizer's file. The ID also covers the other fields of d except
// Unrelated. All engines use this method, so that they can share an index.
func (d Description) WithID(digest string) Description {
	settings := fmt.Sprintf("%s\n%q\n%d\n%d\n%q\n%q\n%q\n%g", digest,
		d.Name, d.Dimension, d.MaxTokens, d.Pooling, d.QueryPrefix, d.DocumentPrefix, d.MinSimilarity)
	sum := sha256.Sum256([]byte(settings))
	d.ID = d.Name + "@" + hex.EncodeToString(sum[:])[:12]
	return d
}

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
