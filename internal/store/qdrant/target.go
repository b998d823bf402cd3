package qdrant

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// The ports of a Qdrant server.
const (
	grpcPort = 6334
	restPort = 6333
)

// Target is where a store is.
type Target struct {
	Host       string
	Port       int // of gRPC
	Collection string
	TLS        bool
}

// ParseTarget reads qdrant://HOST[:6334]/COLLECTION, or qdrants:// for TLS.
// Credentials do not belong in it: it is printed, and seen by other users of
// the machine.
func ParseTarget(s string) (Target, error) {
	wrong := func(format string, args ...any) (Target, error) {
		return Target{}, fmt.Errorf("store %q: %s, want qdrant://HOST:%d/COLLECTION", redact(s), fmt.Sprintf(format, args...), grpcPort)
	}
	u, err := url.Parse(s)
	if err != nil {
		return wrong("it is no address")
	}
	t := Target{Host: u.Hostname(), Port: grpcPort, Collection: strings.TrimPrefix(u.Path, "/")}
	switch u.Scheme {
	case "qdrant":
	case "qdrants":
		t.TLS = true
	default:
		return wrong("scheme %q", u.Scheme)
	}
	switch {
	case u.User != nil:
		return wrong("the key belongs in QDRANT_API_KEY, not in the address")
	case t.Host == "":
		return wrong("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return wrong("it has more than host and collection")
	}
	if p := u.Port(); p != "" {
		if t.Port, err = strconv.Atoi(p); err != nil || t.Port < 1 || t.Port > 65535 {
			return wrong("port %q", p)
		}
	}
	if err := checkName(t.Collection); err != nil {
		return wrong("%v", err)
	}
	return t, nil
}

// maxName leaves room for what is added to the name of a collection: 255 is
// the longest that Qdrant takes.
const maxName = 200

func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("it names no collection")
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.') {
			return fmt.Errorf("collection %q holds %q, which is none of letters, digits, '-', '_' and '.'", name, r)
		}
	}
	if len(name) > maxName {
		return fmt.Errorf("the collection's name has %d characters, more than %d", len(name), maxName)
	}
	return nil
}

// redact takes out of an address what stands before an @.
func redact(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if i := strings.LastIndexByte(rest, '@'); ok && i >= 0 {
		return scheme + "://" + rest[i+1:]
	}
	return s
}

// Addr is host:port.
func (t Target) Addr() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

func (t Target) String() string {
	scheme := "qdrant"
	if t.TLS {
		scheme = "qdrants"
	}
	return scheme + "://" + t.Addr() + "/" + t.Collection
}
