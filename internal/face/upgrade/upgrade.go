// Package upgrade replaces this program by a newer release from a feed, a JSON file that
// lists binaries with their checksums and signatures. It has no built-in feed, and installs
// only binaries with a valid signature of the configured key.
//
// # The feed
//
//	{"version": "v1.2.3", "assets": [{
//	   "os": "linux", "arch": "amd64", "url": "cairn-linux-amd64",
//	   "size": 31457280, "sha256": "HEX", "signature": "BASE64"}]}
//
// A URL can be relative to that of the feed. The signature is an Ed25519 signature of the
// four lines of Message, which prevents the substitution of another version or system.
package upgrade

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"cairn/internal/base/atomicfile"
)

// Release is the content of a feed.
type Release struct {
	Version string  `json:"version"` // semantic, with a leading v
	Assets  []Asset `json:"assets"`
}

// Asset is the binary for one system.
type Asset struct {
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	URL       string `json:"url"`
	Size      int64  `json:"size"` // bytes
	SHA256    string `json:"sha256"`
	Signature string `json:"signature"`
}

// Message returns the signed text.
func Message(version string, a Asset) []byte {
	return fmt.Appendf(nil, "cairn release\n%s\n%s/%s\n%s\n", version, a.OS, a.Arch, strings.ToLower(a.SHA256))
}

// Options configures Check and Install.
type Options struct {
	Feed string
	// Key is the public key in base64.
	Key string
	// Version is the version of this program.
	Version string
	// Program is the file to replace; "" means the executable of this process.
	Program string
	// Force installs a release even if it is not newer.
	Force bool
}

// client sends the requests.
var client = &http.Client{Timeout: 10 * time.Minute, CheckRedirect: func(r *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("more than five redirections")
	}
	return allowed(r.URL)
}}

const (
	maxFeed   = 1 << 20
	maxBinary = 512 << 20
)

// ErrNoFeed is returned if no feed is configured.
var ErrNoFeed = errors.New("no release feed is configured: set CAIRN_RELEASE_FEED to its URL and CAIRN_RELEASE_KEY to the public key that verifies its signatures, or install a newer cairn as you installed this one")

// Error reports a failed upgrade, which has changed nothing.
type Error struct {
	Reason           string `json:"reason"`
	URL              string `json:"url"`
	ChecksumExpected string `json:"checksum_expected,omitempty"`
	ChecksumActual   string `json:"checksum_actual,omitempty"`
}

// Code returns the error code of the contract.
func (e *Error) Code() int { return 1004 }

func (e *Error) Error() string {
	s := fmt.Sprintf("upgrade failed: %s (%s)", e.Reason, e.URL)
	if e.ChecksumExpected != "" {
		s += fmt.Sprintf("; its SHA-256 is %s, want %s", e.ChecksumActual, e.ChecksumExpected)
	}
	return s
}

// NetworkError reports a failed download of the feed or the binary.
type NetworkError struct {
	URL       string `json:"url"`
	TimeoutMS int64  `json:"timeout_ms"`
	Detail    string `json:"error_detail"`
}

// Code returns the error code of the contract.
func (e *NetworkError) Code() int { return 1005 }

func (e *NetworkError) Error() string {
	return fmt.Sprintf("network error: %s: %s; nothing was changed", e.URL, e.Detail)
}

// Result describes an upgrade.
type Result struct {
	Current   string `json:"current"`
	Latest    string `json:"latest"`
	Newer     bool   `json:"newer"`
	Installed bool   `json:"installed"`
	Program   string `json:"program,omitempty"`
	// Unversioned reports a build without a version, which only Force replaces.
	Unversioned bool `json:"unversioned,omitempty"`

	release *Release
}

// Install replaces the program if the feed has a newer release. It downloads and verifies
// the new binary before it replaces the old one in one step.
func Install(ctx context.Context, o Options) (*Result, error) {
	r, err := Check(ctx, o)
	if err != nil || !r.Newer && !o.Force {
		return r, err
	}
	asset, err := o.asset(r.release)
	if err != nil {
		return r, err
	}
	if o.Program == "" {
		if o.Program, err = os.Executable(); err == nil {
			o.Program, err = filepath.EvalSymlinks(o.Program)
		}
		if err != nil {
			return r, &Error{Reason: "finding the file of this program: " + err.Error(), URL: o.Feed}
		}
	}
	if err := o.replace(ctx, asset); err != nil {
		return r, err
	}
	r.Installed, r.Program = true, o.Program
	return r, nil
}

// Check reports whether the feed has a newer release.
func Check(ctx context.Context, o Options) (*Result, error) {
	if o.Feed == "" {
		return nil, ErrNoFeed
	}
	if _, err := o.key(); err != nil {
		return nil, err
	}
	body, err := Get(ctx, o.Feed, maxFeed)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, network(o.Feed, err)
	}
	var release Release
	if err := json.Unmarshal(text, &release); err != nil {
		return nil, &Error{Reason: "the feed cannot be parsed: " + err.Error(), URL: o.Feed}
	}
	if !semver.IsValid(release.Version) {
		return nil, &Error{Reason: fmt.Sprintf("the feed's version is %q, want one such as v1.2.3", release.Version), URL: o.Feed}
	}
	r := &Result{Current: o.Version, Latest: release.Version, Unversioned: !semver.IsValid(o.Version), release: &release}
	r.Newer = !r.Unversioned && semver.Compare(release.Version, o.Version) > 0
	return r, nil
}

func (o *Options) key() (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(o.Key))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, &Error{Reason: "the key is not an Ed25519 public key in base64: set CAIRN_RELEASE_KEY", URL: o.Feed}
	}
	return key, nil
}

// asset returns the asset for this system, verified, with its absolute URL.
func (o *Options) asset(r *Release) (a Asset, err error) {
	i := slices.IndexFunc(r.Assets, func(a Asset) bool { return a.OS == runtime.GOOS && a.Arch == runtime.GOARCH })
	if i < 0 {
		return a, &Error{Reason: fmt.Sprintf("release %s has no binary for %s on %s", r.Version, runtime.GOOS, runtime.GOARCH), URL: o.Feed}
	}
	a = r.Assets[i]
	key, err := o.key()
	if err != nil {
		return a, err
	}
	signature, err := base64.StdEncoding.DecodeString(a.Signature)
	if err != nil || !ed25519.Verify(key, Message(r.Version, a), signature) {
		return a, &Error{Reason: "the signature does not match the key", URL: o.Feed}
	}
	if a.Size <= 0 || a.Size > maxBinary {
		return a, &Error{Reason: fmt.Sprintf("the size of the binary is %d bytes, want 1 to %d", a.Size, maxBinary), URL: o.Feed}
	}
	at, err := url.Parse(o.Feed)
	if err == nil {
		at, err = at.Parse(a.URL)
	}
	if err != nil {
		return a, &Error{Reason: err.Error(), URL: o.Feed}
	}
	a.URL = at.String()
	return a, nil
}

// replace downloads, verifies and installs a binary.
func (o *Options) replace(ctx context.Context, a Asset) (err error) {
	old, err := os.Stat(o.Program)
	if err != nil {
		return &Error{Reason: err.Error(), URL: a.URL}
	}
	body, err := Get(ctx, a.URL, a.Size+1)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := atomicfile.Create(o.Program, old.Mode().Perm())
	if err != nil {
		return &Error{Reason: "writing next to the program: " + err.Error(), URL: a.URL}
	}
	defer f.Discard()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), body)
	if err != nil {
		return network(a.URL, err)
	}
	if have := hex.EncodeToString(sum.Sum(nil)); n != a.Size || have != strings.ToLower(a.SHA256) {
		return &Error{Reason: fmt.Sprintf("the download (%d bytes) is not the binary of the release (%d bytes)", n, a.Size), URL: a.URL, ChecksumExpected: strings.ToLower(a.SHA256), ChecksumActual: have}
	}
	if err := install(f, o.Program); err != nil {
		return &Error{Reason: err.Error(), URL: a.URL}
	}
	return nil
}

// install replaces a running program with f.
func install(f *atomicfile.File, program string) error {
	if runtime.GOOS != "windows" {
		return f.Commit()
	}
	// Windows can rename a running program, but not replace it.
	old := program + ".old"
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(program, old); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return errors.Join(err, os.Rename(old, program))
	}
	return nil
}

// Get opens an https URL for at most limit bytes.
func Get(ctx context.Context, address string, limit int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err == nil {
		err = allowed(req.URL)
	}
	if err != nil {
		return nil, &Error{Reason: err.Error(), URL: address}
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, network(address, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, network(address, errors.New(resp.Status))
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, limit), resp.Body}, nil
}

// allowed fails unless a URL uses https, or http on the loopback interface.
func allowed(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%q is not an https URL", u.Redacted())
}

func network(address string, err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return &NetworkError{URL: address, TimeoutMS: client.Timeout.Milliseconds(), Detail: err.Error()}
}
