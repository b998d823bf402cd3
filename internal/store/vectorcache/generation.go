package vectorcache

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
)

// The file, format 1. Numbers are little-endian, checksums CRC-32C.
//
//	magic    8 bytes "caircach"
//	version  uint32
//	dim      uint32, the dimension
//	model    uint32 length, then the ID
//	checksum uint32, of all above
//	batches  to the end: count uint32, count x 32 bytes of keys, checksum of
//	         both (uint32), then count entries
//	entry    dim float32, checksum of its key and them (uint32)
//
// Opening reads the keys only. The first batch that is not whole ends the
// file: it is what a killed process was writing, and is cut off.
const (
	fileMagic     = "caircach"
	formatVersion = 1
	maxModel      = 4096
	maxDimension  = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damagedError says that a file is not one of ours.
type damagedError struct{ reason string }

func (e *damagedError) Error() string { return e.reason }

// foreignError says that a file is of another model or dimension.
type foreignError struct{ model string }

func (e *foreignError) Error() string { return "made by model " + e.model }

// generation is one file. The index maps the first 8 bytes of a key to its
// entry; the whole key is under the entry's checksum.
type generation struct {
	file    *os.File
	dim     int
	end     int64
	entries int
	index   map[uint64]int64
}

func entrySize(dim int) int { return 4*dim + 4 }

func short(key Key) uint64 { return binary.LittleEndian.Uint64(key[:]) }

func header(model string, dim int) []byte {
	b := append([]byte(nil), fileMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(dim))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(model)))
	b = append(b, model...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func createGeneration(path, model string, dim int) (*generation, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	h := header(model, dim)
	if _, err := f.WriteAt(h, 0); err != nil {
		f.Close()
		return nil, errors.Join(err, os.Remove(path))
	}
	return &generation{file: f, dim: dim, end: int64(len(h)), index: map[uint64]int64{}}, nil
}

func openGeneration(path, model string, dim int) (*generation, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	g := &generation{file: f, dim: dim, index: map[uint64]int64{}}
	if err := g.readHeader(model); err != nil {
		f.Close()
		return nil, err
	}
	err = g.readKeys()
	if err == nil {
		err = f.Truncate(g.end)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return g, nil
}

func (g *generation) readHeader(model string) error {
	fixed := make([]byte, 20)
	if n, err := g.file.ReadAt(fixed, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if n < len(fixed) || string(fixed[:8]) != fileMagic {
		return &damagedError{"it does not begin as one"}
	}
	length := binary.LittleEndian.Uint32(fixed[16:])
	if v := binary.LittleEndian.Uint32(fixed[8:]); v != formatVersion || length > maxModel {
		return &damagedError{fmt.Sprintf("format %d, want %d", v, formatVersion)}
	}
	whole := make([]byte, len(fixed)+int(length)+4)
	if _, err := g.file.ReadAt(whole, 0); err != nil {
		return &damagedError{"its header is cut short"}
	}
	body := whole[:len(whole)-4]
	if binary.LittleEndian.Uint32(whole[len(body):]) != crc32.Checksum(body, castagnoli) {
		return &damagedError{"its header is damaged"}
	}
	if string(body[20:]) != model || int(binary.LittleEndian.Uint32(fixed[12:])) != g.dim {
		return &foreignError{model: string(body[20:])}
	}
	g.end = int64(len(whole))
	return nil
}

// readKeys fills the index from whole batches.
func (g *generation) readKeys() error {
	info, err := g.file.Stat()
	if err != nil {
		return err
	}
	count := make([]byte, 4)
	for {
		if _, err := g.file.ReadAt(count, g.end); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(count))
		head := 4 + n*sha256.Size + 4
		end := g.end + head + n*int64(entrySize(g.dim))
		if n == 0 || end > info.Size() {
			return nil
		}
		b := make([]byte, head)
		if _, err := g.file.ReadAt(b, g.end); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(b[head-4:]) != crc32.Checksum(b[:head-4], castagnoli) {
			return nil
		}
		for i := range n {
			g.index[binary.LittleEndian.Uint64(b[4+i*sha256.Size:])] = g.end + head + i*int64(entrySize(g.dim))
		}
		g.entries += int(n)
		g.end = end
	}
}

// get returns the vector of key, nil when it is unknown or damaged.
func (g *generation) get(key Key, buffer []byte) ([]float32, error) {
	at, ok := g.index[short(key)]
	if !ok {
		return nil, nil
	}
	if _, err := g.file.ReadAt(buffer, at); err != nil {
		return nil, err
	}
	floats := buffer[:4*g.dim]
	if binary.LittleEndian.Uint32(buffer[4*g.dim:]) != entryChecksum(key, floats) {
		return nil, nil // damaged, or a key that begins alike
	}
	v := make([]float32, g.dim)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(floats[4*i:]))
	}
	return v, nil
}

func entryChecksum(key Key, floats []byte) uint32 {
	return crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, floats)
}

// put writes one batch of the keys that are not there, or whose entry is
// damaged. After an error the file goes on from where it was.
func (g *generation) put(keys []Key, vectors [][]float32) error {
	var fresh []int
	taken := make(map[Key]bool, len(keys))
	buffer := make([]byte, entrySize(g.dim))
	for i, key := range keys {
		if taken[key] {
			continue
		}
		taken[key] = true
		if v, err := g.get(key, buffer); err != nil {
			return err
		} else if v == nil {
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 8+len(fresh)*(sha256.Size+entrySize(g.dim))), uint32(len(fresh)))
	for _, i := range fresh {
		b = append(b, keys[i][:]...)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	head := len(b)
	for _, i := range fresh {
		from := len(b)
		for _, x := range vectors[i] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		b = binary.LittleEndian.AppendUint32(b, entryChecksum(keys[i], b[from:]))
	}
	if _, err := g.file.WriteAt(b, g.end); err != nil {
		return errors.Join(err, g.file.Truncate(g.end))
	}
	for j, i := range fresh {
		g.index[short(keys[i])] = g.end + int64(head+j*entrySize(g.dim))
	}
	g.entries += len(fresh)
	g.end += int64(len(b))
	return nil
}
