// Package checksum computes the CRC-32C that detects damage in the files of cairn. It does
// not protect against deliberate changes.
package checksum

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of returns the checksum of b.
func Of(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Add returns the checksum of the data with checksum sum followed by b.
func Add(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
