package walk

import (
	"bytes"
	"unicode/utf8"
)

// Reason is why a file or folder is not indexed. The zero Reason means that it is.
type Reason uint8

// The reasons. Unreadable does not mean that a file was removed: the index keeps the file,
// or everything below the folder.
const (
	None       Reason = iota
	Extension         // not one of the indexed extensions
	Ignored           // by .gitignore or .cairnignore
	Hidden            // the name begins with a dot
	SkippedDir        // a folder such as node_modules or vendor
	Secret            // the name looks like that of a key or password file
	Symlink           // symbolic links are not followed
	Special           // neither file nor folder: a socket, pipe or device
	TooLarge          // more bytes than Options.MaxSize
	Binary            // a NUL in the first 8 KiB
	NotUTF8           // the content is not UTF-8
	BadName           // the name cannot be a workspace path: see Clean
	TooDeep           // more than 128 folders deep
	Unreadable        // permission denied or another error
	Shadowed          // a folder with the name of another root
	ManyRules         // an ignore file with too many rules, of which only the first have an effect
	Vendored          // source code in a folder of other projects' code, such as third_party
)

var reasonText = [...]string{
	None:       "indexed",
	Extension:  "extension not indexed",
	Ignored:    "ignored",
	Hidden:     "hidden",
	SkippedDir: "skipped folder",
	Secret:     "looks like a secret",
	Symlink:    "symbolic link",
	Special:    "not a regular file",
	TooLarge:   "too large",
	Binary:     "binary",
	NotUTF8:    "not UTF-8",
	BadName:    "name not usable as a path",
	TooDeep:    "too deep",
	Unreadable: "unreadable",
	Shadowed:   "shadowed by another root",
	ManyRules:  "ignore file with too many rules, of which only the first have an effect",
	Vendored:   "vendored code",
}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasonText) {
		return reasonText[r]
	}
	return "unknown reason"
}

// WithAdvice returns the text of a reason, with advice if the user can change the file.
func WithAdvice(reason string) string {
	if reason == NotUTF8.String() {
		return reason + " (convert to UTF-8)"
	}
	return reason
}

// Check returns why the content of a file is not text: Binary if its first 8 KiB contain a
// NUL and do not begin with a UTF-16 byte order mark, NotUTF8 if it is not valid UTF-8,
// and None otherwise. An empty file is text.
func Check(content []byte) Reason {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return NotUTF8
	}
	if bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0 {
		return Binary
	}
	if !utf8.Valid(content) {
		return NotUTF8
	}
	return None
}
