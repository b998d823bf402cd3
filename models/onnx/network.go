package onnx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cairn/models/wordpiece"

	"github.com/knights-analytics/hugot/backends"
)

// maxPositions is the default limit of the longest input in tokens. Sentence encoders
// are not trained on longer texts.
const maxPositions = 512

// network is a loaded graph with its tokenizer. It is safe for concurrent use.
type network struct {
	pieces  piecer
	typed   bool   // the second text of a pair has another token type, as in BERT
	longest int    // tokens, special ones included
	digest  string // SHA-256 in hex over the weights and the tokenizer's file

	pipeline *backends.BasePipeline
	release  func() error
}

// openNetwork loads the model in folder dir. It does not use hugot's pipelines,
// which pool by the mean alone.
func openNetwork(dir string) (n *network, err error) {
	// Hugot also accepts URLs; an absolute path is not one.
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	tokenizer, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	pipeline, release, err := load(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	model := pipeline.Model
	if err := checkOutputs(model.OutputsMeta); err != nil {
		return nil, err
	}
	pieces, err := newPiecer(tokenizer, model)
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(filepath.Join(model.Path, model.OnnxPath), tokenizer)
	if err != nil {
		return nil, err
	}
	_, unigram := pieces.(*wordpiece.Unigram)
	n = &network{pieces: pieces, typed: !unigram, longest: maxPositions, digest: digest, pipeline: pipeline, release: release}
	if p := model.MaxPositionEmbeddings; p > 0 {
		n.longest = min(p, maxPositions)
	}
	return n, nil
}

// recoverInto converts a panic to an error. The Go engine panics if it does not support
// a graph.
func recoverInto(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("running the model: %v", r)
	}
}

// checkOutputs returns an error for shapes that hugot cannot return.
func checkOutputs(outputs []backends.InputOutputInfo) error {
	if len(outputs) == 0 {
		return errors.New("the model has no output")
	}
	for i, o := range outputs {
		d := o.Dimensions
		if i == 0 && len(d) != 2 && len(d) != 3 {
			return fmt.Errorf("output %s has shape %v, want 2 or 3 dimensions", o.Name, d)
		}
		if len(d) > 2 && d[len(d)-1] < 1 {
			return fmt.Errorf("output %s has shape %v, want a fixed last dimension", o.Name, d)
		}
	}
	return nil
}

// digestOf hashes the weights, including external tensor files, and then the
// tokenizer.
func digestOf(weights string, tokenizer []byte) (string, error) {
	dir, base := filepath.Split(weights)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	files := []string{weights}
	for _, suffix := range []string{"_data", ".data"} {
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), base+suffix) {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	h := sha256.New()
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	h.Write(tokenizer)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// run returns the graph's first output for one input, as [][]float32 or
// [][][]float32 with one row, that of the input. second is the index of the second text of a
// pair.
func (n *network) run(ids []int32, second int) (output any, err error) {
	defer recoverInto(&err)
	in := backends.TokenizedInput{TypeIDs: make([]uint32, len(ids)), MaxAttentionIndex: len(ids) - 1}
	for i, id := range ids {
		in.TokenIDs, in.AttentionMask = append(in.TokenIDs, uint32(id)), append(in.AttentionMask, 1)
		if n.typed && i >= second {
			in.TypeIDs[i] = 1
		}
	}
	b := backends.NewBatch(1)
	b.Input = []backends.TokenizedInput{in}
	b.MaxSequenceLength = len(ids)
	defer func() { err = errors.Join(err, b.Destroy()) }()
	if err := backends.CreateInputTensors(b, n.pipeline.Model, n.pipeline.Runtime); err != nil {
		return nil, err
	}
	// Cancelling the context would free the input while the engine uses it.
	if err := backends.RunSessionOnBatch(context.Background(), b, n.pipeline); err != nil {
		return nil, err
	}
	return b.OutputValues[0], nil
}

func (n *network) close() error { return n.release() }
