// Package upgrade replaces this program by a newer release from a feed that the
// user has named: a JSON file that lists the binaries with their checksums and
// signatures. It opens no connection by itself, and installs nothing that the
// holder of the key has not signed.
//
// # The feed
//
//	{"version": "v1.2.3", "assets": [{
//	   "os": "linux", "arch": "amd64", "url": "cairn-linux-amd64",
//	   "size": 31457280, "sha256": "HEX", "signature": "BASE64"}]}
//
// A URL may be relative to the feed's. The signature is that of Ed25519 over the
// four lines of Message, so that neither an older release nor that of another
// system can be passed off as this one.
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
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"cairn/internal/atomicfile"
)

// Release is what a feed says.
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

// Message is what is signed.
func Message(version string, a Asset) []byte {
	return fmt.Appendf(nil, "cairn release\n%s\n%s/%s\n%s\n", version, a.OS, a.Arch, strings.ToLower(a.SHA256))
}

// Options say where from and what to replace.
type Options struct {
	Feed string
	// Key is the public key in base64.
	Key string
	// Version is that of this program.
	Version string
	// Program is the file to replace; "" is this program's.
	Program string
	// Force installs a release that is not newer.
	Force bool
	// Client makes the requests; nil is one with limits of its own.
	Client *http.Client
	// OS and Arch are those of this program when empty.
	OS, Arch string
}

// Timeout bounds one request as a whole.
const Timeout = 10 * time.Minute

const (
	maxFeed   = 1 << 20
	maxBinary = 512 << 20
)

// ErrNoFeed says that no feed is configured.
var ErrNoFeed = errors.New("no release feed is configured: set CAIRN_RELEASE_FEED to its URL and CAIRN_RELEASE_KEY to the public key of who signs it, or install a newer cairn the way this one was")

// Error says that an upgrade was not carried out. Nothing was changed.
type Error struct {
	Reason           string `json:"reason"`
	URL              string `json:"url"`
	ChecksumExpected string `json:"checksum_expected,omitempty"`
	ChecksumActual   string `json:"checksum_actual,omitempty"`
}

// Code is that of the contract.
func (e *Error) Code() int { return 1004 }

func (e *Error) Error() string {
	s := fmt.Sprintf("upgrade failed: %s (%s)", e.Reason, e.URL)
	if e.ChecksumExpected != "" {
		s += fmt.Sprintf("; its SHA-256 is %s, want %s", e.ChecksumActual, e.ChecksumExpected)
	}
	return s
}

// NetworkError says that the feed or the binary could not be fetched.
type NetworkError struct {
	URL       string `json:"url"`
	TimeoutMS int64  `json:"timeout_ms"`
	Detail    string `json:"error_detail"`
}

// Code is that of the contract.
func (e *NetworkError) Code() int { return 1005 }

func (e *NetworkError) Error() string {
	return fmt.Sprintf("network error: %s: %s; nothing was changed", e.URL, e.Detail)
}

// Result says what was found and done.
type Result struct {
	Current   string `json:"current"`
	Latest    string `json:"latest"`
	Newer     bool   `json:"newer"`
	Installed bool   `json:"installed"`
	Program   string `json:"program,omitempty"`
}

// Check reads the feed and says whether it has a newer release.
func Check(ctx context.Context, o Options) (*Result, error) {
	r, _, err := check(ctx, &o)
	return r, err
}

// Install replaces the program if the feed has a newer release. The new binary
// is complete and verified before it takes the place of the old one in one step.
func Install(ctx context.Context, o Options) (*Result, error) {
	r, release, err := check(ctx, &o)
	if err != nil || !r.Newer && !o.Force {
		return r, err
	}
	asset, err := o.asset(release)
	if err != nil {
		return r, err
	}
	if o.Program == "" {
		if o.Program, err = os.Executable(); err == nil {
			o.Program, err = filepath.EvalSymlinks(o.Program)
		}
		if err != nil {
			return r, &Error{Reason: "this program's file is not known: " + err.Error(), URL: o.Feed}
		}
	}
	if err := o.replace(ctx, asset); err != nil {
		return r, err
	}
	r.Installed, r.Program = true, o.Program
	return r, nil
}

func check(ctx context.Context, o *Options) (*Result, *Release, error) {
	if o.Feed == "" {
		return nil, nil, ErrNoFeed
	}
	if o.OS == "" {
		o.OS, o.Arch = runtime.GOOS, runtime.GOARCH
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: Timeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 5 {
				return errors.New("more than five redirections")
			}
			return allowed(r.URL)
		}}
	}
	if _, err := o.key(); err != nil {
		return nil, nil, err
	}
	body, err := o.get(ctx, o.Feed, maxFeed)
	if err != nil {
		return nil, nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, nil, o.network(o.Feed, err)
	}
	var release Release
	if err := json.Unmarshal(text, &release); err != nil {
		return nil, nil, &Error{Reason: "the feed is not what it should be: " + err.Error(), URL: o.Feed}
	}
	if !semver.IsValid(release.Version) {
		return nil, nil, &Error{Reason: fmt.Sprintf("the feed's version is %q, want one such as v1.2.3", release.Version), URL: o.Feed}
	}
	r := &Result{Current: o.Version, Latest: release.Version}
	// A build without a version is not replaced unless that is asked for.
	r.Newer = semver.IsValid(o.Version) && semver.Compare(release.Version, o.Version) > 0
	return r, &release, nil
}

func (o *Options) key() (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(o.Key))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, &Error{Reason: "the key is not an Ed25519 public key in base64: set CAIRN_RELEASE_KEY", URL: o.Feed}
	}
	return key, nil
}

// asset is the signed one for this system, with its whole URL.
func (o *Options) asset(r *Release) (Asset, error) {
	for _, a := range r.Assets {
		if a.OS != o.OS || a.Arch != o.Arch {
			continue
		}
		key, err := o.key()
		if err != nil {
			return a, err
		}
		signature, err := base64.StdEncoding.DecodeString(a.Signature)
		if err != nil || !ed25519.Verify(key, Message(r.Version, a), signature) {
			return a, &Error{Reason: "the signature is not that of the key", URL: o.Feed}
		}
		if a.Size <= 0 || a.Size > maxBinary {
			return a, &Error{Reason: fmt.Sprintf("a size of %d bytes", a.Size), URL: o.Feed}
		}
		base, err := url.Parse(o.Feed)
		if err == nil {
			var at *url.URL
			if at, err = base.Parse(a.URL); err == nil {
				a.URL = at.String()
			}
		}
		if err != nil {
			return a, &Error{Reason: err.Error(), URL: o.Feed}
		}
		return a, nil
	}
	return Asset{}, &Error{Reason: fmt.Sprintf("release %s has no binary for %s on %s", r.Version, o.OS, o.Arch), URL: o.Feed}
}

// replace fetches, verifies and installs.
func (o *Options) replace(ctx context.Context, a Asset) (err error) {
	old, err := os.Stat(o.Program)
	if err != nil {
		return &Error{Reason: err.Error(), URL: a.URL}
	}
	body, err := o.get(ctx, a.URL, a.Size+1)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := atomicfile.Create(o.Program, old.Mode().Perm())
	if err != nil {
		return &Error{Reason: "cannot write beside the program: " + err.Error(), URL: a.URL}
	}
	defer f.Discard()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), body)
	if err != nil {
		return o.network(a.URL, err)
	}
	if have := hex.EncodeToString(sum.Sum(nil)); n != a.Size || have != strings.ToLower(a.SHA256) {
		return &Error{Reason: fmt.Sprintf("what arrived has %d bytes, want %d", n, a.Size), URL: a.URL, ChecksumExpected: strings.ToLower(a.SHA256), ChecksumActual: have}
	}
	if err := install(f, o.Program); err != nil {
		return &Error{Reason: err.Error(), URL: a.URL}
	}
	return nil
}

// install puts a file in the place of a program that runs.
func install(f *atomicfile.File, program string) error {
	if runtime.GOOS != "windows" {
		return f.Commit()
	}
	// A program that runs can be renamed there, but not replaced.
	aside := program + ".old"
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(program, aside); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return errors.Join(err, os.Rename(aside, program))
	}
	return nil
}

// get fetches at most limit bytes.
func (o *Options) get(ctx context.Context, address string, limit int64) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err == nil {
		err = allowed(u)
	}
	if err != nil {
		return nil, &Error{Reason: err.Error(), URL: address}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &Error{Reason: err.Error(), URL: address}
	}
	resp, err := o.Client.Do(req)
	if err != nil {
		return nil, o.network(address, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, o.network(address, errors.New(resp.Status))
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, limit), resp.Body}, nil
}

// allowed refuses a way on which others can read or change what is sent, but
// for that within this machine.
func allowed(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%q is not an https URL", u.Redacted())
}

func (o *Options) network(address string, err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return &NetworkError{URL: address, TimeoutMS: o.Client.Timeout.Milliseconds(), Detail: err.Error()}
}
