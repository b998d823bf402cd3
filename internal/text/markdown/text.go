package markdown

import (
	"bytes"
	"fmt"
	"time"

	"cairn/internal/text/convert"
	"cairn/internal/text/outline"
	"cairn/internal/text/sandbox"
	"cairn/internal/text/secret"
)

// TextOf returns the text of a file and the number of secrets that masks replaced in it.
// The indexer, the retriever and the commands use only this text. TextOf converts a file
// that is compressed, or of a format that is Converted, in another process, since a hostile
// file can make a converter use any amount of memory and time. TextOf does not change data and may return
// it. The caller checks the result, not data, with walk.Check.
//
// The error is a *convert.Error if the file cannot be converted, is generated source
// code or is no text for readers, and a *sandbox.Error if the conversion exceeds a limit. It has another type if the
// system refuses the process.
func TextOf(name string, data []byte, masks *secret.Masks) (text []byte, masked int, err error) {
	f := FormatOf(name)
	if Verbatim(name) {
		data = Decoded(data)
	} else if data, err = convertFile(name, data); err != nil {
		return nil, 0, err
	}
	reason := ""
	if f == source {
		reason = outline.Unwanted(data)
	} else if armor().Match(data) {
		reason = "OpenPGP data"
	}
	if reason != "" {
		return nil, 0, &convert.Error{Reason: reason}
	}
	text, masked = masks.Mask(data)
	return text, masked, nil
}

// armor matches the beginning of a key, a signature or an encrypted message, which share the
// extension .asc with AsciiDoc. A signed message is text.
var armor = pattern(`^-----BEGIN PGP (?:P|SIGNATURE|M)`)

// Decoded returns the text of a file in UTF-8: see convert.UTF8.
func Decoded(data []byte) []byte { return convert.UTF8(data) }

// Verbatim reports whether the text of a file is its bytes in UTF-8, with secrets masked.
func Verbatim(name string) bool { return !FormatOf(name).Converted() && !outline.Compressed(name) }

// limits bounds each conversion. Of 67,000 files that are no attack, none exceeded them.
var limits = sandbox.Limits{Memory: 256 << 20, Time: 10 * time.Second}

// version counts the changes of converters after which a file that was skipped may have a
// text, or a file another text.
const version = 8

// Rules identifies the rules for texts. An index that was made with other Rules is rebuilt.
func Rules() string {
	return fmt.Sprintf("text-%d memory=%d time=%v", version, limits.Memory, limits.Time)
}

// converters runs conversions.
var converters = sandbox.New("convert", limits, answer)

func init() { converters.Serve() }

// The first byte of a response says what follows.
const (
	isText   = 't'
	isReason = 'r'
)

// convertFile converts a file in a child process.
func convertFile(name string, data []byte) ([]byte, error) {
	response, err := converters.Call(append([]byte(name), 0), data)
	switch {
	case err != nil:
		return nil, err
	case len(response) > 0 && response[0] == isText:
		return response[1:], nil
	}
	return nil, &convert.Error{Reason: string(bytes.TrimPrefix(response, []byte{isReason}))}
}

// answer converts the file of a request, in the child process.
func answer(request []byte) []byte {
	name, data, _ := bytes.Cut(request, []byte{0})
	converter := FormatOf(string(name)).convert
	if outline.Compressed(string(name)) {
		converter = convert.Gzip(converter)
	}
	text, err := convert.Markdown(converter, string(name), data)
	if err != nil {
		return append([]byte{isReason}, err.Error()...)
	}
	return append([]byte{isText}, text...)
}
