// Package token stores the bearer tokens of a server. It does not depend on HTTP.
//
// A token is "cairn_ID_SECRET". The ID names it in lists and in the file. The
// secret is 32 random bytes, and the file has only its SHA-256. A slow hash
// protects guessable passwords; 256 random bits cannot be guessed.
//
// The file is JSON, {"version":1,"tokens":[...]}, replaced atomically
// under a lock. It is outside every workspace, so no repository can supply one.
package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/base/atomicfile"
)

// Scope is the kind of access a token grants.
type Scope string

// The scopes. Each includes those before it.
const (
	Read  Scope = "read"
	Write Scope = "write" // change cards, tasks and what is learnt
	Admin Scope = "admin" // discard the index and rebuild it
)

// ParseScope reads a scope.
func ParseScope(s string) (Scope, error) {
	switch Scope(s) {
	case Read, Write, Admin:
		return Scope(s), nil
	}
	return "", fmt.Errorf("unknown scope %q, want {read,write,admin}", s)
}

// Token describes a token, without its secret.
type Token struct {
	ID    string `json:"id"`
	Name  string `json:"name"` // for people; unique
	Scope Scope  `json:"scope"`
	// Workspaces are the names of the workspaces it grants access to; none means all.
	Workspaces []string  `json:"workspaces,omitempty"`
	Created    time.Time `json:"created"`
	Expires    time.Time `json:"expires,omitzero"` // zero: never
	// Hash is the SHA-256 of the secret's text, hex.
	Hash string `json:"hash"`
}

// MayWrite reports whether the token permits changes.
func (t Token) MayWrite() bool { return t.Scope == Write || t.Scope == Admin }

// MayAdminister reports whether the token permits rebuilding the index.
func (t Token) MayAdminister() bool { return t.Scope == Admin }

// Permits reports whether the token grants access to a workspace.
func (t Token) Permits(workspace string) bool {
	return len(t.Workspaces) == 0 || slices.Contains(t.Workspaces, workspace)
}

// Errors of the store.
var (
	// ErrUnknown is returned for a secret that belongs to no valid token.
	ErrUnknown = errors.New("unknown or expired token")
	// ErrNotFound is returned for an ID or name that no token has.
	ErrNotFound = errors.New("no such token; `cairn token list` shows them")
)

// Store is a file of tokens. It is safe for concurrent use by several
// processes: a token that another process revokes is refused at its next use.
type Store struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	info   fs.FileInfo // of the file from which tokens were read; nil if there is none
	tokens []Token
}

// Open returns the store in a file, which need not exist. now is the clock;
// nil is time.Now.
func Open(path string, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{path: path, now: now}
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

const (
	version     = 1
	prefix      = "cairn_"
	maxTokens   = 10_000
	maxFile     = 16 << 20 // bytes
	secretBytes = 32
	idBytes     = 6
	lockWait    = 2 * time.Second
)

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}$`)

// New creates a token and returns it with its secret, which the store does not
// keep. The token expires after expires; 0 means never.
func (s *Store) New(ctx context.Context, name string, scope Scope, workspaces []string, expires time.Duration) (secret string, t Token, err error) {
	if !nameRule.MatchString(name) {
		return "", t, fmt.Errorf("%q cannot name a token, want 1 to 64 letters, digits, spaces and any of ._@-", name)
	}
	if _, err := ParseScope(string(scope)); err != nil {
		return "", t, err
	}
	if expires < 0 {
		return "", t, fmt.Errorf("the token would have expired %s ago", -expires)
	}
	id := hex.EncodeToString(random(idBytes))
	text := base64.RawURLEncoding.EncodeToString(random(secretBytes))
	secret = prefix + id + "_" + text
	created := s.now().UTC().Truncate(time.Second)
	t = Token{ID: id, Name: name, Scope: scope, Workspaces: slices.Compact(slices.Sorted(slices.Values(workspaces))), Created: created, Hash: hash(text)}
	if expires > 0 {
		t.Expires = created.Add(expires)
	}
	err = s.change(ctx, func(tokens []Token) ([]Token, error) {
		if len(tokens) >= maxTokens {
			return nil, fmt.Errorf("there are %d tokens, revoke some first", len(tokens))
		}
		if slices.ContainsFunc(tokens, func(o Token) bool { return o.Name == name || o.ID == id }) {
			return nil, fmt.Errorf("there is a token named %q; revoke it first, or choose another name", name)
		}
		return append(tokens, t), nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return secret, t, nil
}

// localName is the name of the token that Local returns.
const localName = "local"

// LocalPath returns the path of the file with the secret of Local.
func (s *Store) LocalPath() string { return filepath.Join(filepath.Dir(s.path), localName+".token") }

// Local returns the secret of the token with which the user of this process calls
// servers of their own. It creates the token, and the file LocalPath, which only this
// user can read, when either is missing.
func (s *Store) Local(ctx context.Context) (secret string, err error) {
	text, err := os.ReadFile(s.LocalPath())
	if err == nil {
		if _, err := s.Check(strings.TrimSpace(string(text))); err == nil {
			return strings.TrimSpace(string(text)), nil
		}
	}
	if _, err := s.Revoke(ctx, localName); err != nil && !errors.Is(err, ErrNotFound) {
		return "", err
	}
	secret, _, err = s.New(ctx, localName, Admin, nil, 0)
	if err != nil {
		return "", err
	}
	if err := atomicfile.Write(s.LocalPath(), []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the token: %w", err)
	}
	return secret, nil
}

// List returns the tokens in order of creation, including expired ones.
func (s *Store) List() ([]Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	return slices.Clone(s.tokens), nil
}

// Revoke removes the token with that ID or name.
func (s *Store) Revoke(ctx context.Context, idOrName string) (Token, error) {
	var revoked Token
	err := s.change(ctx, func(tokens []Token) ([]Token, error) {
		i := slices.IndexFunc(tokens, func(t Token) bool { return t.ID == idOrName || t.Name == idOrName })
		if i < 0 {
			return nil, fmt.Errorf("%q: %w", idOrName, ErrNotFound)
		}
		revoked = tokens[i]
		return slices.Delete(tokens, i, i+1), nil
	})
	return revoked, err
}

// Check returns the token that a secret belongs to, or ErrUnknown. Its time does
// not depend on how many bytes of the secret match.
func (s *Store) Check(secret string) (Token, error) {
	s.mu.Lock()
	err := s.load()
	tokens := s.tokens // replaced, never changed
	s.mu.Unlock()
	if err != nil {
		return Token{}, err
	}
	id, text, ok := strings.Cut(strings.TrimPrefix(secret, prefix), "_")
	i := slices.IndexFunc(tokens, func(t Token) bool { return t.ID == id }) // IDs are not secret
	if !ok || !strings.HasPrefix(secret, prefix) || i < 0 {
		return Token{}, ErrUnknown
	}
	t := tokens[i]
	if subtle.ConstantTimeCompare([]byte(hash(text)), []byte(t.Hash)) != 1 || !t.Expires.IsZero() && !s.now().Before(t.Expires) {
		return Token{}, ErrUnknown
	}
	return t, nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

// file is the format on disk.
type file struct {
	Version int     `json:"version"`
	Tokens  []Token `json:"tokens"`
}

// load reads the file unless it is unchanged. The caller holds s.mu.
func (s *Store) load() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.info, s.tokens = nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	// Each change replaces the file, so this check sees every change.
	if s.info != nil && os.SameFile(info, s.info) && info.ModTime().Equal(s.info.ModTime()) && info.Size() == s.info.Size() {
		return nil
	}
	s.info, s.tokens = nil, nil // a damaged file grants nothing
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users may write %s, so its tokens cannot be trusted; chmod 600 it", s.path)
	}
	if info.Size() > maxFile {
		return fmt.Errorf("%s has %d bytes, want at most %d", s.path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("reading the tokens in %s: %w", s.path, err)
	}
	if f.Version != version {
		return fmt.Errorf("%s has version %d, want %d", s.path, f.Version, version)
	}
	s.info, s.tokens = info, f.Tokens
	return nil
}

// change replaces the tokens with the result of fn.
func (s *Store) change(ctx context.Context, fn func([]Token) ([]Token, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of the tokens: %w", err)
	}
	lock := flock.New(s.path + ".lock")
	defer lock.Close()
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if ok, err := lock.TryLockContext(wait, 10*time.Millisecond); !ok {
		return fmt.Errorf("another process is changing %s: %w", s.path, err)
	}
	if err := s.load(); err != nil {
		return err
	}
	tokens, err := fn(slices.Clone(s.tokens))
	if err != nil {
		return err
	}
	text, _ := json.MarshalIndent(file{version, tokens}, "", "  ") // never fails: the fields are plain
	if err := atomicfile.Write(s.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the tokens: %w", err)
	}
	return nil
}
