package qdrant

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The ports of a Qdrant server.
const (
	grpcPort = 6334
	restPort = 6333
)

// Target is the address of a store.
type Target struct {
	Host       string
	Port       int // of gRPC
	Collection string
	TLS        bool
}

// ParseTarget parses qdrant://HOST[:6334]/COLLECTION, or qdrants:// for TLS. It rejects
// credentials, because targets are logged and visible to other users of the machine.
func ParseTarget(s string) (Target, error) {
	wrong := func(format string, args ...any) (Target, error) {
		return Target{}, fmt.Errorf("store %q: %s, want qdrant://HOST:%d/COLLECTION", redact(s), fmt.Sprintf(format, args...), grpcPort)
	}
	u, err := url.Parse(s)
	if err != nil {
		return wrong("it is not a valid address")
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
	if !namePattern.MatchString(t.Collection) {
		return wrong("a collection's name has 1 to 200 letters, digits, '-', '_' and '.'")
	}
	return t, nil
}

// namePattern matches the names of collections. Qdrant permits 255 characters; the rest is for
// suffixes.
var namePattern = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,200}$`)

// redact removes the user information from an address.
func redact(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if i := strings.LastIndexByte(rest, '@'); ok && i >= 0 {
		return scheme + "://" + rest[i+1:]
	}
	return s
}

// Addr returns host:port.
func (t Target) Addr() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

func (t Target) String() string {
	scheme := "qdrant"
	if t.TLS {
		scheme = "qdrants"
	}
	return scheme + "://" + t.Addr() + "/" + t.Collection
}
