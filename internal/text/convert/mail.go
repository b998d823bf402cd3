package convert

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strconv"
	"strings"
)

// maxParts is the maximum nesting of message parts.
const maxParts = 8

// Mail converts a message.
func Mail(w *writer, data []byte) error { return writeMessage(w, data, 1, "", 0) }

// Mbox converts a mailbox. Message n becomes a section with the anchor message-n.
func Mbox(w *writer, data []byte) error {
	if !bytes.HasPrefix(data, []byte("From ")) {
		return errBroken
	}
	number := 0
	for rest := data; len(rest) > 0; {
		w.spend(5000)
		_, message, _ := bytes.Cut(rest, []byte("\n")) // without the "From " line
		next := bytes.Index(message, []byte("\nFrom "))
		rest = nil
		if next >= 0 {
			message, rest = message[:next+1], message[next+1:]
		}
		number++
		if err := writeMessage(w, message, 2, "message-"+strconv.Itoa(number), 0); err != nil {
			w.heading(2, "Message "+strconv.Itoa(number), "message-"+strconv.Itoa(number))
			w.text("This message cannot be read.")
		}
	}
	return nil
}

// writeMessage writes a message with its subject as the heading. depth is the number of
// messages and parts that contain it.
func writeMessage(w *writer, data []byte, level int, id string, depth int) error {
	w.spend(4 * len(data))
	if data = bytes.TrimPrefix(data, []byte("\ufeff")); bytes.HasPrefix(data, []byte("From ")) { // saved from a mailbox
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return errBroken
	}
	subject := cmp.Or(decodedHeader(m.Header, "Subject"), "No subject")
	w.heading(level, subject, id)
	var head []string
	for _, key := range []string{"From", "To", "Date"} {
		if value := decodedHeader(m.Header, key); value != "" {
			head = append(head, key+": "+escape(value))
		}
	}
	w.paragraph(strings.Join(head, "\n"))
	w.messagePart(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body, depth)
	return nil
}

// maxHeader is the maximum size of a header's value in bytes. Decoding takes quadratic time.
const maxHeader = 8 << 10

func decodedHeader(h mail.Header, key string) string {
	raw := cut(h.Get(key), maxHeader)
	d := mime.WordDecoder{CharsetReader: func(label string, r io.Reader) (io.Reader, error) {
		text, err := io.ReadAll(r)
		return bytes.NewReader(utf8Text(text, label)), err
	}}
	value, _ := d.DecodeHeader(raw) // it fails only if CharsetReader does
	return strings.Join(strings.Fields(string(utf8Text([]byte(value), ""))), " ")
}

// messagePart writes the text of a part and reports whether there was any. Of
// alternatives it writes only the first with text.
func (w *writer) messagePart(kind, encoding string, body io.Reader, depth int) bool {
	w.spend(5000)
	if depth > maxParts {
		panic(errDepth)
	}
	media, params, err := mime.ParseMediaType(kind)
	if err != nil {
		media = "text/plain"
	}
	switch strings.ToLower(encoding) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	switch {
	case strings.HasPrefix(media, "multipart/") && params["boundary"] != "":
		found := false
		for r := multipart.NewReader(body, params["boundary"]); ; {
			part, err := r.NextRawPart()
			if err != nil {
				return found
			}
			kind := part.Header.Get("Content-Type")
			if name := part.FileName(); name != "" {
				w.text("Attachment: " + name)
				if !strings.HasPrefix(strings.ToLower(kind), "message/") {
					continue
				}
			}
			if found && media == "multipart/alternative" {
				continue
			}
			found = w.messagePart(kind, part.Header.Get("Content-Transfer-Encoding"), part, depth+1) || found
		}
	case strings.HasPrefix(media, "text/"), strings.HasPrefix(media, "message/"): // also a message in a message, and a report on its delivery
		text, _ := io.ReadAll(io.LimitReader(body, maxOutput+1)) // up to the first decoding error
		if len(text) > maxOutput {
			panic(errOutput)
		}
		w.spend(16 * len(text))
		before := len(w.out)
		if media == "message/rfc822" {
			return depth < maxParts/2 && writeMessage(w, text, 3, "", depth+1) == nil
		}
		text = utf8Text(text, params["charset"])
		if media == "text/html" {
			if writePage(w, text, 2) != nil {
				w.text("This part cannot be read.")
			}
			return len(w.out) > before
		}
		for block := range strings.SplitSeq(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n\n") {
			w.paragraph(escape(block))
		}
		return len(w.out) > before
	}
	return false
}
