package walk

import (
	"bytes"
	"unicode/utf8"
)

// Reason says why a file or folder is not indexed. The zero Reason means that it is.
type Reason string

// The reasons. Unreadable does not mean that a file was removed: the index keeps the file,
// or everything below the folder.
const (
	None       Reason = ""
	Extension  Reason = "extension not indexed"
	Ignored    Reason = "ignored"             // by .gitignore or .cairnignore
	Hidden     Reason = "hidden"              // the name begins with a dot
	SkippedDir Reason = "skipped folder"      // such as node_modules or vendor
	Secret     Reason = "looks like a secret" // by its name
	Symlink    Reason = "symbolic link"
	Special    Reason = "not a regular file" // a socket, pipe or device
	TooLarge   Reason = "too large"          // more bytes than Options.MaxSize
	Binary     Reason = "binary"             // a NUL in the first 8 KiB
	NotUTF8    Reason = "not UTF-8"
	BadName    Reason = "name not usable as a path" // see Clean
	TooDeep    Reason = "too deep"                  // more than 128 folders deep
	Unreadable Reason = "unreadable"                // permission denied or another error
	Shadowed   Reason = "shadowed by another root"  // a folder with its name
	ManyRules  Reason = "ignore file with too many rules, of which only the first have an effect"
	Vendored   Reason = "vendored code" // in a folder such as third_party
)

// WithAdvice returns the text of a reason, with advice if the user can change the file.
func WithAdvice(reason string) string {
	if reason == string(NotUTF8) {
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
