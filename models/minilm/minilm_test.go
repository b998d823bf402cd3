package minilm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"cairn/models"
	"cairn/models/bert"
)

func TestVerify(t *testing.T) {
	if err := Verify(); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// TestFingerprint: a change of a file changes the ID of the models that it defines.
func TestFingerprint(t *testing.T) {
	for want, files := range map[string][]byte{fingerprint: slices.Concat(weights, tokenizer), toolFingerprint: slices.Concat(weights, tokenizer, toolChanges)} {
		if got := fmt.Sprintf("%x", sha256.Sum256(files)); got != want {
			t.Errorf("the files have the fingerprint %s, the constant is %s", got, want)
		}
	}
	if want := fmt.Sprintf("\x00symbols-%.6x\x00", sha256.Sum256(symbolChanges)); symbolPrefix != want {
		t.Errorf("the prefix of symbols is %q, want %q", symbolPrefix, want)
	}
}

func TestCorruptedFileIsRefusedByName(t *testing.T) {
	for name, file := range map[string][]byte{"model.onnx": Weights(), "tokenizer.json": TokenizerJSON(), "tools.lora": toolChanges, "symbols.lora": symbolChanges} {
		if err := verify(sums, name, sha256.Sum256(file)); err != nil {
			t.Errorf("verify(%s) = %v", name, err)
		}
		broken := bytes.Clone(file)
		broken[len(broken)/2] ^= 1
		for what, b := range map[string][]byte{"one bit flipped": broken, "last byte missing": file[:len(file)-1], "empty": nil} {
			err := verify(sums, name, sha256.Sum256(b))
			if err == nil || !strings.Contains(err.Error(), name+" is corrupted") {
				t.Errorf("verify(%s, %s) = %v, want an error that names the file", name, what, err)
			}
		}
	}
	if err := verify(sums, "other.onnx", [sha256.Size]byte{}); err == nil || !strings.Contains(err.Error(), "other.onnx") {
		t.Errorf("verify of an unlisted file = %v, want an error that names it", err)
	}
}

func TestDescription(t *testing.T) {
	d := Description()
	// An index is bound to this ID: a change makes every index of the shipped
	// model stale.
	if got, want := d.ID, "all-MiniLM-L6-v2@6417ac581d34"; got != want {
		t.Errorf("ID = %q, want %q", got, want)
	}
	if d.Dimension != 384 || d.MaxTokens != 256 || d.Pooling != "mean" || d.MinSimilarity != .3 {
		t.Errorf("Description() = %+v", d)
	}
}

func TestOpen(t *testing.T) {
	e, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if got, want := e.Description(), Description(); got != want {
		t.Errorf("Description() of the encoder = %+v, want %+v", got, want)
	}
	const query = "how do I bake bread"
	docs := []string{"Knead flour, water, salt and yeast, let the dough rise and put it into the oven.", "The court of appeal upheld the sentence."}
	q, err := e.EmbedQuery(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := e.EmbedDocuments(t.Context(), docs)
	if err != nil {
		t.Fatal(err)
	}
	if near, far := dot(q, vectors[0]), dot(q, vectors[1]); near < .3 || far > .3 {
		t.Errorf("similarity to %q: bread %.3f, court %.3f, want the first above and the second below the threshold .3", query, near, far)
	}
	// The tokenizer's file asks for 128 tokens; the model reads 256.
	tok, err := e.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("bread ", 1000)
	if got := tok.Encode(long); len(got) != 256 || !slices.Equal(alone.Encode(long), got) || alone.Count(long) != 1000 {
		t.Errorf("a long text has %d tokens, want 256, also by Tokenizer", len(got))
	}
}

// TestOpenTools: the vectors of a request and of the tool for it are nearer than those of the
// model, also if they share no word.
func TestOpenTools(t *testing.T) {
	requests := map[string][2]string{
		"who can see this page?":    {"list page permissions. Lists the users and groups with access to a document", "create page. Creates a document in a space"},
		"shut it down for tonight":  {"stop instance. Stops a running virtual machine", "list images. Lists the images of virtual machines"},
		"did the parcel get there?": {"track shipment. Returns the delivery status of a package", "create label. Creates a shipping label"},
	}
	leads := map[string]float64{}
	for name, open := range map[string]func(*bert.Options) (*bert.Encoder, error){Description().ID: Open, ToolDescription().ID: OpenTools} {
		e, err := open(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if got := e.Description().ID; got != name {
			t.Errorf("ID of the encoder %q, want %q", got, name)
		}
		for request, tools := range requests {
			v, err := e.EmbedDocuments(t.Context(), []string{request, tools[0], tools[1]})
			if err != nil {
				t.Fatal(err)
			}
			leads[name] += dot(v[0], v[1]) - dot(v[0], v[2])
		}
	}
	if before, now := leads[Description().ID], leads[ToolDescription().ID]; now < 1.5*before || now < .5 {
		t.Errorf("the right tools lead by %.2f in all, with the model for documents by %.2f", now, before)
	}
}

// TestReader compares logits and tags with those of pairs.py, computed in bfloat16.
func TestReader(t *testing.T) {
	r, err := OpenReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[string]float64{
		"todo: update task. Changes the title, notes or due date of a task. | id, title, due": 13.62,
		"todo: create task. Adds a task to a list. | list, title, due":                        -10.76,
		"weather: get forecast. Returns the forecast for a city. | city":                      -12.82,
		"todo: complete task. Marks a task as done. | id":                                     -11.81,
	}
	texts := slices.Sorted(maps.Keys(want))
	logits, err := r.Rerank(t.Context(), "change the due date of the rent task to Friday", texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if math.Abs(logits[i]-want[text]) > 1.5 {
			t.Errorf("%s: logit %.2f, want %.2f", text, logits[i], want[text])
		}
	}
	for request, want := range map[string]string{
		"Please fork the repo, then open a pull request\nand tell #dev about it": "20112011120111 0.68",
		"list files": "01 1.00",
		"My card was stolen last night. Block it, and order a new card.": "2222220120111 1.00",
		"search, add to cart, then checkout the cart":                    "00112011 1.00",
		"": " 1.00",
	} {
		var lines [][]string
		for line := range strings.SplitSeq(request, "\n") {
			lines = append(lines, strings.Fields(line))
		}
		tags, probability, err := r.Tag(t.Context(), lines)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, tag := range tags {
			got.WriteByte('0' + byte(tag))
		}
		var p float64
		if fmt.Sscan(strings.TrimPrefix(want, got.String()+" "), &p); math.Abs(p-probability) > .15 {
			t.Errorf("%q: tags %s with probability %.2f, want %s", request, &got, probability, want)
		}
	}
	// Long requests are read in pieces, and so is a word that is longer than one.
	long := strings.Fields(strings.Repeat("fork the repository and then push the files ", 100) + strings.Repeat("a.", 500) + " now")
	if tags, _, err := r.Tag(t.Context(), [][]string{long}); err != nil || len(tags) != len(long) || tags[4] != models.Outside || tags[789] != models.Begins {
		t.Errorf("%d tags of %d words, %v", len(tags), len(long), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tags, _, err := r.Tag(ctx, [][]string{long}); err == nil {
		t.Errorf("cancelled: %d tags", len(tags))
	}
	tok, err := splitter()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3, 100, 1600, 5000} {
		if _, err := bert.NewReader(weights, pairChanges[:n], tok, nil); err == nil {
			t.Errorf("%d bytes of the changes make a reader", n)
		}
	}
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestOpenRefusesAnUnknownKernel(t *testing.T) {
	if _, err := Open(&bert.Options{Kernel: "abacus"}); err == nil || !strings.Contains(err.Error(), "abacus") {
		t.Errorf("Open(kernel abacus) = %v, want an error that names it", err)
	}
}

func BenchmarkVerify(b *testing.B) {
	b.SetBytes(int64(len(weights)))
	for b.Loop() {
		sha256.Sum256(weights)
	}
}
