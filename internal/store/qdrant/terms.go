package qdrant

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store/keyword"
)

// terms is the dictionary of a keyword index: the engine knows a term by its
// number and cannot tell which others are near. It holds what a misspelt word
// may stand for (keyword.Spellable) in the order in which it was first seen, and of
// what came together the commonest first. How common a term is now the engine
// says, so a term whose chunks have left may stay.
//
// It is part of the collection of documents, so that each generation has its own:
//
//	kind    "dictionary"
//	epoch   drawn when the dictionary was begun
//	pieces, terms
//	        how many pieces there are, and how many terms in them
//
//	kind    "terms"
//	epoch   of the dictionary; a piece with another is none of it
//	terms   separated by line feeds, at most termsBytes
//	sum     CRC-32 (IEEE) of terms
//
// The one writer adds to the last piece until it is full, and changes the
// dictionary's point after the pieces. A server reads that point at each fuzzy
// query, and then the pieces that are new or have grown: all of them at the first
// one, none before. A million terms, as a million chunks may have, are 10 to
// 17 MB here, in 150 to 250 pieces, and as much in the memory of each server that
// was asked for a misspelt word; a writer has some 40 MB more, to know a new term
// by. There are at most maxPieces, 32 MiB: terms that come later are found as
// typed alone.
//
// A piece that cannot be read is skipped, and read again by the next
// query. A writer that meets one, or no dictionary, rebuilds it from the texts.
type terms struct {
	documents *Documents
	pieceSize int // bytes
	maxPieces int

	mu      sync.Mutex
	head    termsHead           // as it was read last
	words   *keyword.Dictionary // of it
	taken   []int               // bytes of each piece that are in words
	missing map[int]bool        // pieces that could not be read
	last    string              // the last piece
	warned  bool                // that a piece is missing, or that no more are written
	seen    map[uint64]struct{} // digests of words; nil until this process writes
}

const (
	termsBytes = 64 << 10
	maxPieces  = 512
	// askPieces is how many are read or written at a time.
	askPieces = 32
)

// termsHead is the dictionary's own point.
type termsHead struct {
	epoch         string // "": there is no dictionary
	pieces, terms int
}

const headPoint = "dictionary"

func piecePoint(n int) string { return fmt.Sprintf("terms:%d", n) }

func newTerms(d *Documents) *terms {
	t := &terms{documents: d, pieceSize: termsBytes, maxPieces: maxPieces}
	t.begin("")
	return t
}

// begin clears t for another dictionary.
func (t *terms) begin(epoch string) {
	t.head, t.words, t.taken, t.missing, t.last, t.warned = termsHead{epoch: epoch}, &keyword.Dictionary{}, nil, map[int]bool{}, "", false
	if t.seen != nil {
		t.seen = map[uint64]struct{}{}
	}
}

// get returns the payloads of points, nil for a missing one. It reads from the
// majority, in case a replica that was away holds older ones.
func (t *terms) get(ctx context.Context, names ...string) ([]map[string]*pb.Value, error) {
	found := map[string]map[string]*pb.Value{}
	err := t.documents.client.read(ctx, func(ctx context.Context) error {
		r, err := t.documents.client.grpc.Points().Get(ctx, &pb.GetPoints{
			CollectionName: t.documents.name, Ids: pointIDs(names), WithPayload: pb.NewWithPayload(true),
			ReadConsistency: pb.NewReadConsistencyType(pb.ReadConsistencyType_Majority),
		})
		for _, p := range r.GetResult() {
			found[p.GetId().GetUuid()] = p.Payload
		}
		return err
	})
	payloads := make([]map[string]*pb.Value, len(names))
	for i, name := range names {
		payloads[i] = found[pointID(name).GetUuid()]
	}
	return payloads, err
}

// readHead returns the dictionary's point as it is stored now.
func (t *terms) readHead(ctx context.Context) (termsHead, error) {
	if err := t.documents.Open(ctx); err != nil {
		return termsHead{}, err
	}
	found, err := t.get(ctx, headPoint)
	p := found[0]
	return termsHead{
		epoch:  p["epoch"].GetStringValue(),
		pieces: int(max(0, min(p["pieces"].GetIntegerValue(), int64(t.maxPieces)))),
		terms:  int(p["terms"].GetIntegerValue()),
	}, err
}

// refresh reads what was stored since the last call. t.mu is held.
func (t *terms) refresh(ctx context.Context) error {
	head, err := t.readHead(ctx)
	if err != nil {
		return err
	}
	if head.epoch != t.head.epoch {
		t.begin(head.epoch)
	}
	if head == t.head && len(t.missing) == 0 {
		return nil
	}
	var ask []int // what is new or may have grown, and what could not be read so far
	for n := range head.pieces {
		if n >= t.head.pieces-1 || t.missing[n] {
			ask = append(ask, n)
		}
	}
	t.taken = append(t.taken, make([]int, max(0, head.pieces-len(t.taken)))...)
	for some := range slices.Chunk(ask, askPieces) {
		names := make([]string, len(some))
		for i, n := range some {
			names[i] = piecePoint(n)
		}
		found, err := t.get(ctx, names...)
		if err != nil {
			return err
		}
		for i, n := range some {
			t.take(n, head, found[i])
		}
	}
	t.head = head
	return nil
}

// take adds what is new in a piece.
func (t *terms) take(n int, head termsHead, p map[string]*pb.Value) {
	piece := p["terms"].GetStringValue()
	if p["epoch"].GetStringValue() != head.epoch || p["sum"].GetIntegerValue() != sumOf(piece) || len(piece) < max(1, t.taken[n]) {
		t.missing[n] = true
		t.warn("a part of the store's dictionary is missing or damaged: some misspelt words are not put right until the next change is indexed",
			"part", n+1, "parts", head.pieces)
		return
	}
	delete(t.missing, n)
	for term := range strings.SplitSeq(piece[t.taken[n]:], "\n") {
		t.learn(term)
	}
	t.taken[n] = len(piece)
	if n == head.pieces-1 {
		t.last = piece
	}
}

// warn logs a message once for each dictionary.
func (t *terms) warn(message string, facts ...any) {
	if !t.warned {
		t.warned = true
		t.documents.client.log.Warn(message, append([]any{"collection", t.documents.name}, facts...)...)
	}
}

func (t *terms) learn(term string) {
	t.words.Add(term)
	if t.seen != nil {
		t.seen[digest(term)] = struct{}{}
	}
}

// digest tells terms apart: among a million, two have the same once in some
// thirty million dictionaries, and one of them is then left out.
func digest(term string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(term))
	return h.Sum64()
}

func sumOf(piece string) int64 { return int64(crc32.ChecksumIEEE([]byte(piece))) }

// known returns the terms as they were read last, nil before the first time.
func (t *terms) known() *keyword.Dictionary {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.words == nil || t.words.Len() == 0 {
		return nil
	}
	return t.words
}

// dictionary returns the terms as they are stored now.
func (t *terms) dictionary(ctx context.Context) (*keyword.Dictionary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(ctx); err != nil {
		return nil, fmt.Errorf("reading the dictionary: %w", err)
	}
	return t.words, nil
}

// exists reports whether there is a dictionary, complete or not.
func (t *terms) exists(ctx context.Context) (bool, error) {
	head, err := t.readHead(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the dictionary: %w", err)
	}
	return head.epoch != "", nil
}

// add stores the terms of a batch, given how many of its chunks hold each. stored
// returns the same of all chunks in the store, for a dictionary that has to be made.
func (t *terms) add(ctx context.Context, batch map[string]int, stored func(context.Context) (map[string]int, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.extend(ctx, batch, stored); err != nil {
		return fmt.Errorf("writing the dictionary: %w", err)
	}
	return nil
}

// extend is add with t.mu held.
func (t *terms) extend(ctx context.Context, batch map[string]int, stored func(context.Context) (map[string]int, error)) error {
	if t.seen == nil {
		t.seen = map[uint64]struct{}{}
		t.begin("") // with digests this time
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	rebuild := t.head.epoch == "" || len(t.missing) > 0
	if rebuild {
		all, err := stored(ctx)
		if err != nil {
			return err
		}
		for term, n := range batch {
			all[term] += n
		}
		batch = all
		t.begin(rand.Text())
	}
	var fresh []string
	for term := range batch {
		if _, known := t.seen[digest(term)]; !known && keyword.Spellable(term) {
			fresh = append(fresh, term)
		}
	}
	if len(fresh) == 0 && !rebuild {
		return nil
	}
	slices.SortFunc(fresh, func(a, b string) int { return cmp.Or(cmp.Compare(batch[b], batch[a]), cmp.Compare(a, b)) })
	return t.write(ctx, fresh)
}

// write appends terms to the pieces. The fields of t change when all is stored,
// so an interrupted write is repeated.
func (t *terms) write(ctx context.Context, fresh []string) error {
	head := t.head
	from := max(0, head.pieces-1) // the piece that is added to
	head.pieces = from
	pieces := []string{}
	var piece strings.Builder
	piece.WriteString(t.last)
	end := func() {
		if piece.Len() > 0 {
			pieces = append(pieces, piece.String())
			head.pieces++
			piece.Reset()
		}
	}
	written := fresh
	for i, term := range fresh {
		if piece.Len() > 0 && piece.Len()+1+len(term) > t.pieceSize {
			end()
			if head.pieces == t.maxPieces {
				written = fresh[:i]
				t.warn("the store's dictionary is full: words that are new are not found when they are misspelt", "terms", head.terms+i)
				break
			}
		}
		if piece.Len() > 0 {
			piece.WriteByte('\n')
		}
		piece.WriteString(term)
	}
	end()
	if len(written) == 0 && len(fresh) > 0 {
		return nil
	}
	head.terms += len(written)
	for i := 0; i < len(pieces); i += askPieces {
		var points []*pb.PointStruct
		for j, piece := range pieces[i:min(len(pieces), i+askPieces)] {
			points = append(points, bare(piecePoint(from+i+j), map[string]*pb.Value{
				"kind": pb.NewValueString("terms"), "epoch": pb.NewValueString(head.epoch), "terms": pb.NewValueString(piece), "sum": pb.NewValueInt(sumOf(piece)),
			}))
		}
		if err := t.documents.client.update(ctx, t.documents.name, points, nil); err != nil {
			return err
		}
	}
	point := bare(headPoint, map[string]*pb.Value{
		"kind": pb.NewValueString("dictionary"), "epoch": pb.NewValueString(head.epoch), "pieces": pb.NewValueInt(int64(head.pieces)), "terms": pb.NewValueInt(int64(head.terms)),
	})
	if err := t.documents.client.update(ctx, t.documents.name, []*pb.PointStruct{point}, nil); err != nil {
		return err
	}
	for _, term := range written {
		t.learn(term)
	}
	t.taken = t.taken[:from]
	for _, piece := range pieces {
		t.taken = append(t.taken, len(piece))
		t.last = piece
	}
	t.head = head
	return nil
}
