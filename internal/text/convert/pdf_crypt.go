package convert

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
	"hash"
)

var errPassword = &Error{"encrypted (needs a password)"}

// pdfLock decrypts a file that opens with the empty user password: the standard security
// handler of ISO 32000-1, 7.6, of Adobe's Supplement to it, extension level 3 (revision 5),
// and of ISO 32000-2, 7.6 (revision 6). It ignores the permissions, as it only reads text.
type pdfLock struct {
	f                *pdfFile
	key              []byte
	filters          dict // the crypt filters
	strings, streams name // the names of those in use
}

// padding replaces an empty password: ISO 32000-1, 7.6.3.3.
var padding = []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")

// openLock reads an encryption dictionary. It panics if the file needs a password, or has
// another security handler.
func openLock(f *pdfFile, d dict, id string) *pdfLock {
	number := func(key name) int { return int(as[float64](f, d[key])) }
	l := &pdfLock{f: f, filters: f.dict(d["CF"]), strings: as[name](f, d["StrF"]), streams: as[name](f, d["StmF"])}
	if number("V") < 4 {
		l.filters, l.strings, l.streams = dict{"RC4": dict{"CFM": name("V2")}}, "RC4", "RC4"
	}
	revision, owner, user := number("R"), as[string](f, d["O"]), []byte(as[string](f, d["U"]))
	if as[name](f, d["Filter"]) != "Standard" || revision > 6 || len(user) < 32 {
		panic(errEncrypted)
	}
	if revision >= 5 { // ISO 32000-2, algorithm 2.A: user is a hash and two salts of 8 bytes
		if encrypted := append(make([]byte, aes.BlockSize), as[string](f, d["UE"])...); bytes.HasPrefix(user, hash256(f.w, revision, user[32:40])) {
			l.key = decryptAES(hash256(f.w, revision, user[40:48]), encrypted)[:32] // it has no padding
			return l
		}
		panic(errPassword)
	}
	seed := append(bytes.Clone(padding), owner[:min(len(owner), 32)]...) // ISO 32000-1, algorithm 2
	seed = append(binary.LittleEndian.AppendUint32(seed, uint32(number("P"))), id...)
	if plain, ok := f.resolve(d["EncryptMetadata"]).(bool); ok && !plain && revision >= 4 {
		seed = append(seed, 0xff, 0xff, 0xff, 0xff)
	}
	// Files state wrong lengths, or none, and the user entry decides which one is right.
	for _, n := range []int{5, 16, min(max(number("Length")/8, 5), 16)} {
		sum := md5.Sum(seed)
		for i := 0; revision > 2 && i < 50; i++ {
			sum = md5.Sum(sum[:n])
		}
		f.w.spend(50_000 + 2*len(seed) + 2*len(id))
		if l.key = sum[:n]; bytes.HasPrefix(user, userEntry(l.key, revision, id)) {
			return l
		}
	}
	panic(errPassword)
}

// userEntry returns the start of the user entry of the empty password: ISO 32000-1,
// algorithm 4 for revision 2, or else algorithm 5.
func userEntry(key []byte, revision int, id string) []byte {
	entry, rounds := padding, 1
	if revision > 2 {
		sum := md5.Sum(append(bytes.Clone(padding), id...))
		entry, rounds = sum[:], 20
	}
	for i := range rounds {
		step := bytes.Repeat([]byte{byte(i)}, len(key))
		subtle.XORBytes(step, step, key)
		entry = decryptRC4(step, entry)
	}
	return entry
}

// hash256 hashes the empty password and a salt: by SHA-256 in revision 5, and by ISO 32000-2,
// algorithm 2.B, in revision 6. The loop ends after 287 rounds, as a byte is at most 255.
func hash256(w *writer, revision int, salt []byte) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	for round := 1; revision >= 6; round++ {
		w.spend(20_000)
		e := bytes.Repeat(k, 64)
		block, _ := aes.NewCipher(k[:16]) // it never fails: the key has 16 bytes
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		rest := 0 // of the first 16 bytes as a number, divided by 3, which divides 256-1
		for _, b := range e[:16] {
			rest += int(b)
		}
		h := []func() hash.Hash{sha256.New, sha512.New384, sha512.New}[rest%3]()
		h.Write(e)
		if k = h.Sum(nil); round >= 64 && int(e[len(e)-1]) <= round-32 {
			break
		}
	}
	return k[:32]
}

// open decrypts a string or the data of a stream: ISO 32000-1, algorithms 1 and 1.A. An
// unknown crypt filter is Identity.
func (l *pdfLock) open(filter name, at place, data []byte) []byte {
	d := l.f.dict(l.filters[filter])
	l.f.w.spend(2000 + 4*len(data))
	seed := append(bytes.Clone(l.key), byte(at.number), byte(at.number>>8), byte(at.number>>16), byte(at.generation), byte(at.generation>>8))
	n := min(len(seed), md5.Size)
	switch method := as[name](l.f, d["CFM"]); {
	case d == nil:
		return data
	case method == "V2":
		sum := md5.Sum(seed)
		return decryptRC4(sum[:n], data)
	case method == "AESV2":
		sum := md5.Sum(append(seed, "sAlT"...))
		return decryptAES(sum[:n], data)
	case method == "AESV3":
		return decryptAES(l.key, data)
	}
	panic(errEncrypted)
}

func decryptRC4(key, data []byte) []byte {
	out := make([]byte, len(data))
	c, _ := rc4.NewCipher(key) // it never fails: the key has 5 to 16 bytes
	c.XORKeyStream(out, data)
	return out
}

// decryptAES decrypts blocks after their initialization vector, and removes the padding of
// the last one. It ignores an incomplete block. A key with the wrong length panics.
func decryptAES(key, data []byte) []byte {
	if len(data) < 2*aes.BlockSize {
		return nil
	}
	out := make([]byte, len(data)/aes.BlockSize*aes.BlockSize-aes.BlockSize)
	block, _ := aes.NewCipher(key)
	cipher.NewCBCDecrypter(block, data[:aes.BlockSize]).CryptBlocks(out, data[aes.BlockSize:][:len(out)])
	padding := min(int(out[len(out)-1]), aes.BlockSize)
	return out[:len(out)-padding]
}
