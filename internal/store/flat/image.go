package flat

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/checksum"
	"cairn/internal/base/packed"
)

// An image holds the state of a large store as it is in memory. Open maps it instead of
// applying every record and making every sketch. It is a cache: if it is missing, damaged
// or of other records, Open reads the vector file.
//
// The file has these parts, each padded to imageAlign bytes, with arrays in native byte
// order:
//
//	blocks    blockSize bytes for each block
//	vectors   contentSize bytes for each 1,024 vectors
//	dead      a bit for each slot
//	ids       the texts of each block's IDs
//	documents as in a record
//	starts    4 bytes for each sorted document and one more, see partitions
//	of        4 bytes for each ordered slot
//	sketches  sketchSize bytes for each full block
//	checksums a CRC-32C for each imagePage bytes of the parts before
//	trailer   see imageTrailer
const (
	imageName  = "image.cairn"
	imageMagic = 0x326d496e72696163 // "cairnIm2"
	imageAlign = 4096
	imagePage  = 1 << 20
	// imageLacks is the share of slots that an image may lack after an update, as a divisor;
	// imageLacksAtClose is the same when the store is closed.
	imageLacks        = 8
	imageLacksAtClose = 64
)

// imageTrailer ends an image.
type imageTrailer struct {
	Magic uint64
	// Fingerprint identifies the records that the image comprises.
	Fingerprint [sha256.Size]byte
	Records     uint64
	Slots       uint64
	Cleared     uint64
	Vectors     uint64
	Retained    uint64
	IDs         uint64 // bytes
	Documents   uint64
	DocBytes    uint64
	Ordered     uint64 // slots, see partitions
	OrderedDocs uint64
	// Checksum is that of the checksums and the trailer before it.
	Checksum uint32
}

var trailerSize = binary.Size(imageTrailer{})

// imageLayout has the offset of each part.
type imageLayout struct{ vectors, dead, ids, documents, starts, of, sketches, checksums, size int }

func (t *imageTrailer) layout(stride int) (l imageLayout) {
	at := 0
	add := func(n int) int {
		at = roundUp(at+n, imageAlign)
		return at
	}
	l.vectors = add(blocksOf(t.Slots) * blockSize)
	l.dead = add(blocksOf(t.Vectors) * contentSize)
	l.ids = add((int(t.Slots) + 63) / 64 * 8)
	l.documents = add(int(t.IDs))
	l.starts = add(int(t.DocBytes))
	l.of = add(4 * (int(t.OrderedDocs) + 1))
	l.sketches = add(4 * int(t.Ordered))
	l.checksums = add(int(t.Slots) / blockLen * sketchSize(stride))
	l.size = l.checksums + (l.checksums+imagePage-1)/imagePage*4 + trailerSize
	return l
}

func blocksOf(n uint64) int { return int((n + blockLen - 1) / blockLen) }

func (s *Store) imagePath() string { return filepath.Join(filepath.Dir(s.path), imageName) }

// fingerprint returns a hash of the file's header and of the headers of records, which
// have checksums of the rest.
func (s *Store) fingerprint(records []*record) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(fileHeader(s.dim, s.model))
	for _, r := range records {
		h.Write(r.header)
	}
	h.Sum(sum[:0])
	return sum
}

// saveImage writes an image of snap if the last one lacks more than 1/lacks of its slots, and
// orders the slots if more than 1/imageLacks are not. It returns the snapshot to use from now
// on. The caller holds s.mu, or is load.
func (s *Store) saveImage(snap *snapshot, lacks int) *snapshot {
	if s.imaged > snap.n {
		s.imaged = 0
	}
	if s.options.ReadOnly || len(s.sealed(snap)) == 0 || lacks*(snap.n-s.imaged) <= snap.n {
		return snap
	}
	if snap.live >= s.options.partitionedFrom && imageLacks*(snap.n-len(snap.partitions.of)) > snap.n {
		next, err := s.order(snap)
		if err == nil {
			return next
		}
		s.options.Logger.Warn("the vectors cannot be ordered, so that a search reads all of them", "error", err)
	}
	s.imaged = snap.n // also after an error, which would repeat at every update
	if _, err := s.writeImage(snap); err != nil {
		s.options.Logger.Warn("the image of the vectors cannot be written, so that the next start takes longer", "error", err)
	}
	return snap
}

// order writes an image of snap with its slots ordered and returns the state in it.
func (s *Store) order(snap *snapshot) (*snapshot, error) {
	next, err := s.partitioned(snap)
	if err != nil {
		return nil, err
	}
	records, err := s.writeImage(next)
	if err != nil {
		return nil, err
	}
	st, missing := s.restore(snap.log, records)
	if len(missing) > 0 {
		return nil, errors.New("the image cannot be read")
	}
	if err := s.readBlocks(st.snap); err != nil {
		return nil, err
	}
	s.docIndex, s.contents = nil, st.contents
	return st.snap, nil
}

// writeImage returns the records that the image comprises.
func (s *Store) writeImage(snap *snapshot) ([]*record, error) {
	start, _, err := readFileHeader(snap.log.file, s.dim, s.model)
	if err != nil {
		return nil, err
	}
	records, err := s.walk(snap.log.file, start, snap.log.end)
	if err != nil {
		return nil, err
	}
	if n := len(records); n == 0 || records[n-1].end() != snap.log.end {
		return nil, &CorruptError{Path: s.path, Reason: "the last record is damaged"}
	}
	c, p := &s.contents, snap.partitions
	var docs []byte
	for i := range snap.docs {
		docs = snap.docs[i].append(docs)
	}
	t := &imageTrailer{
		Magic: imageMagic, Fingerprint: s.fingerprint(records), Records: uint64(len(records)),
		Slots: uint64(snap.n), Cleared: uint64(snap.cleared), Vectors: uint64(c.n), Retained: uint64(c.retained),
		Documents: uint64(len(snap.docs)), DocBytes: uint64(len(docs)),
		Ordered: uint64(len(p.of)), OrderedDocs: uint64(p.docs()),
	}
	for i, b := range snap.blocks {
		t.IDs += uint64(b.ids.begin(min(blockLen, snap.n-i*blockLen)))
	}
	f, err := atomicfile.Create(s.imagePath(), 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Discard()
	w := &imageWriter{w: bufio.NewWriterSize(f, imagePage)}
	for _, b := range snap.blocks {
		w.add(b.memory)
	}
	w.align()
	for _, b := range c.blocks {
		w.add(b.memory)
	}
	w.align()
	w.add(bytesOf(snap.dead[:(snap.n+63)/64]))
	w.align()
	for i, b := range snap.blocks {
		w.add(b.ids.text.Load().bytes[:b.ids.begin(min(blockLen, snap.n-i*blockLen))])
	}
	w.align()
	w.add(docs)
	w.align()
	w.add(bytesOf(p.starts))
	w.align()
	w.add(bytesOf(p.of))
	w.align()
	if err := s.addSketches(w, snap); err != nil {
		return nil, err
	}
	w.align()
	runtime.KeepAlive(snap)
	if err := w.end(t); err != nil {
		return nil, err
	}
	return records, f.Commit()
}

// addSketches adds the sketches of full blocks. Those that it has to make it does not keep.
func (s *Store) addSketches(w *imageWriter, snap *snapshot) error {
	for batch := range slices.Chunk(snap.full(), 4*runtime.GOMAXPROCS(0)) {
		sketches := make([]*sketch, len(batch))
		err := share(runtime.GOMAXPROCS(0), len(batch), func(_, i int) error {
			b := batch[i]
			if sketches[i] = b.sketch.Load(); sketches[i] != nil {
				return nil
			}
			err := snap.readCodes(b, blockLen)
			if err == nil {
				s.sealBlock(snap, b)
				sketches[i] = b.sketch.Swap(nil)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, k := range sketches {
			w.add(k.memory)
		}
		runtime.KeepAlive(sketches)
	}
	return nil
}

// imageWriter writes parts and computes the checksums of their pages.
type imageWriter struct {
	w    *bufio.Writer
	at   int
	sum  uint32 // of the page so far
	sums []byte
	err  error
}

func (w *imageWriter) add(b []byte) {
	for len(b) > 0 && w.err == nil {
		n := min(len(b), imagePage-w.at%imagePage)
		_, w.err = w.w.Write(b[:n])
		w.sum = checksum.Add(w.sum, b[:n])
		if w.at += n; w.at%imagePage == 0 {
			w.endPage()
		}
		b = b[n:]
	}
}

func (w *imageWriter) endPage() {
	w.sums = binary.NativeEndian.AppendUint32(w.sums, w.sum)
	w.sum = 0
}

func (w *imageWriter) align() { w.add(make([]byte, roundUp(w.at, imageAlign)-w.at)) }

func (w *imageWriter) end(t *imageTrailer) error {
	if w.at%imagePage != 0 {
		w.endPage()
	}
	b, _ := binary.Append(w.sums, binary.NativeEndian, t) // never fails: the size of t is fixed
	b = b[:len(b)-4]
	b = binary.NativeEndian.AppendUint32(b, checksum.Of(b))
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
	return errors.Join(w.err, w.w.Flush())
}

// image is a mapped image.
type image struct {
	imageTrailer
	imageLayout
	memory []byte
}

// openImage returns the image of the first of records, or nil if there is none that is
// whole.
func (s *Store) openImage(records []*record) *image {
	f, err := os.Open(s.imagePath())
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < int64(trailerSize) || int64(int(info.Size())) != info.Size() {
		return nil
	}
	img, size := new(image), int(info.Size())
	end := io.NewSectionReader(f, int64(size-trailerSize), int64(trailerSize))
	if err := binary.Read(end, binary.NativeEndian, &img.imageTrailer); err != nil || img.Magic != imageMagic {
		return nil
	}
	for _, n := range []uint64{img.Slots, img.Vectors, img.IDs, img.Documents, img.DocBytes, img.Ordered, img.OrderedDocs} {
		if n > uint64(size) {
			return nil
		}
	}
	img.imageLayout = img.layout(strideOf(s.dim))
	if img.size != size || img.Records > uint64(len(records)) || img.Fingerprint != s.fingerprint(records[:img.Records]) {
		return nil
	}
	if img.memory, err = mapPrivate(f, size); err != nil {
		return nil
	}
	runtime.AddCleanup(img, munmap, img.memory)
	if sums := img.memory[img.checksums:]; checksum.Of(sums[:len(sums)-4]) != img.Checksum {
		return nil
	}
	return img
}

// whole reports whether the pages that hold bytes [from, to) match their checksums.
func (img *image) whole(from, to int) bool {
	first, end := from/imagePage, (to+imagePage-1)/imagePage
	return share(runtime.GOMAXPROCS(0), end-first, func(_, i int) error {
		at := (first + i) * imagePage
		page := img.memory[at:min(at+imagePage, img.checksums)]
		if checksum.Of(page) != binary.NativeEndian.Uint32(img.memory[img.checksums+4*(first+i):]) {
			return errors.New("the image is damaged")
		}
		return nil
	}) == nil
}

// restore returns the state that img holds, or nil if it is damaged. records are those of
// the image.
func (img *image) restore(s *Store, l *log, records []*record) (st *loaded) {
	var fault error
	defer func() {
		if fault != nil {
			st = nil
		}
	}()
	defer recoverFault(debug.SetPanicOnFault(true), &fault)
	defer runtime.KeepAlive(img)
	if !img.whole(0, img.sketches) {
		return nil
	}
	sketches := make(chan bool, 1)
	go func() { sketches <- img.whole(img.sketches, img.checksums) }()
	st = &loaded{snap: newSnapshot(s.dim, l)}
	ok := st.contents.restore(img, records) && st.snap.restore(img, &st.contents)
	if !<-sketches || !ok {
		return nil
	}
	return st
}

// restore sets c to the vectors of img.
func (c *contents) restore(img *image, records []*record) bool {
	for _, r := range records {
		if r.added > 0 {
			c.extents = append(c.extents, r.extent(c.n))
		}
		c.n += r.added
	}
	if c.n != int(img.Vectors) {
		return false
	}
	for i := range blocksOf(img.Vectors) {
		c.blocks = append(c.blocks, contentBlockOf(img.memory[img.vectors+i*contentSize:][:contentSize], img))
	}
	for n := range c.n {
		if v := c.at(uint32(n)); v.refs == 0 && v.key != (contentKey{}) {
			c.cached++
		}
	}
	c.retained = int(img.Retained)
	return true
}

// restore sets s to the state in img, of which c has the vectors.
func (s *snapshot) restore(img *image, c *contents) bool {
	docs := &packed.Reader{Rest: string(img.memory[img.documents:][:img.DocBytes])}
	for range img.Documents {
		if docs.Bad {
			return false
		}
		s.docs = append(s.docs, readPayload(docs))
	}
	if !docs.Done() {
		return false
	}
	s.n, s.cleared, s.vectors = int(img.Slots), int(img.Cleared), c.vectors
	s.live = s.n
	for at := 0; at < (s.n+63)/64*8; at += 8 {
		s.dead = append(s.dead, binary.NativeEndian.Uint64(img.memory[img.dead+at:]))
		s.live -= bits.OnesCount64(s.dead[at/8])
	}
	texts := img.memory[img.ids:][:img.IDs]
	for i := range blocksOf(img.Slots) {
		b := blockOf(img.memory[i*blockSize:][:blockSize], img)
		n := min(blockLen, s.n-i*blockLen)
		used := b.ids.begin(n)
		if used > len(texts) || !b.valid(n, len(s.docs), c.n) {
			return false
		}
		b.ids.text.Store(&idText{texts[:used:used], img})
		texts = texts[used:]
		s.blocks = append(s.blocks, b)
	}
	size := sketchSize(s.stride)
	for i, b := range s.full() {
		b.sketch.Store(sketchOf(img.memory[img.sketches+i*size:][:size], s.stride, img))
	}
	if !s.restorePartitions(img) {
		return false
	}
	s.table = newTable(s.live)
	filling := *s
	s.table.filling.Go(func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { filling.table.fault = recover() }()
		filling.fillTable(filling.n)
		runtime.KeepAlive(img)
	})
	return true
}

// valid reports whether the first n slots of b refer to some of the documents, vectors and
// bytes of IDs that there are.
func (b *block) valid(n, docs, vectors int) bool {
	for i := range n {
		if int(b.doc[i]) >= docs || int(b.vector[i]) >= vectors || b.ids.begin(i) > b.ids.begin(i+1) {
			return false
		}
	}
	return true
}
