// Package checksum computes the CRC-32C with which cairn finds damage in the files it
// keeps, and describes what a check has found. It does not protect against a change on
// purpose.
package checksum

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of returns the checksum of b.
func Of(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Add returns the checksum of what sum was computed of, followed by b.
func Add(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// File is what a check of a file, or of the files of one part, has read and found.
type File struct {
	Name     string   `json:"name"`
	Bytes    int64    `json:"bytes"`
	Records  int      `json:"records,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Repaired says what was done about the problems; "" for nothing.
	Repaired string `json:"repaired,omitempty"`
}
