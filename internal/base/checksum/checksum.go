// Package checksum computes the CRC-32C that detects damage in the files of cairn, and
// describes the result of a check. It does not protect against deliberate changes.
package checksum

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of returns the checksum of b.
func Of(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Add returns the checksum of the data with checksum sum followed by b.
func Add(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// File is the result of checking a file, or the files of one part of the index.
type File struct {
	Name     string   `json:"name"`
	Bytes    int64    `json:"bytes"`
	Records  int      `json:"records,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Repaired describes the repair, "" for none.
	Repaired string `json:"repaired,omitempty"`
}
