package walk

import (
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"cairn/internal/code"
)

// Code says where source code is indexed by its extension, except in folders that hold
// the code of others.
type Code uint8

// Where source code is indexed.
const (
	CodeOff  Code = iota // nowhere
	CodeAuto             // in roots that are repositories: they hold .git
	CodeOn               // in all roots
)

// vendored are names of folders that hold copies of other projects.
var vendored = []string{"third_party", "third-party", "thirdparty", "bower_components", "site-packages", "_vendor", "Pods", "Carthage"}

// Documents are the extensions of files that are always indexed.
var Documents = []string{
	".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".asciidoc", ".org", ".tex", ".latex", ".html", ".htm", ".xhtml",
	".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub", ".pdf", ".ipynb", ".csv", ".tsv",
	".1", ".2", ".3", ".4", ".5", ".6", ".7", ".8", ".man",
}

// Configuration are patterns over the lower-case names of the files that are always
// indexed up to maxConfiguration bytes, unless they are generated. Other files of
// these extensions are data.
var Configuration = []string{
	"*.yaml", "*.yml", "*.toml", "*config*.json", "*settings*.json", "*openapi*.json", "*swagger*.json", "package.json",
	"composer.json", "manifest.json", "deno.json", "lerna.json", "nx.json", "turbo.json", "vercel.json", "firebase.json",
	"angular.json", "app.json", "project.json", "launch.json", "tasks.json", "docker-compose*.json",
}

// maxConfiguration is the size in bytes up to which configuration is indexed; larger
// files are data. Descriptions of interfaces, such as openapi.yaml, may be longer.
const maxConfiguration = 256 << 10

// generated are patterns over the lower-case names of files that tools write.
var generated = []string{
	"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "*-lock.json", "*-lock.yaml", "*-lock.yml", "*.lock.*", "*.min.*",
}

// IsConfiguration reports whether a file of that name is Configuration.
func IsConfiguration(name string) bool {
	name = strings.ToLower(path.Base(name))
	switch path.Ext(name) {
	case ".json", ".yaml", ".yml", ".toml":
	default:
		return false
	}
	matches := func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, name) }
	return slices.ContainsFunc(Configuration, matches) && !slices.ContainsFunc(generated, matches)
}

// isInterface reports whether a name says that the file describes an interface.
func isInterface(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "openapi") || strings.Contains(name, "swagger")
}

// interfaceKey is what a description of OpenAPI begins with, in YAML or JSON.
var interfaceKey = regexp.MustCompile(`^(?:\s|#.*\n|---|\{)*"?(?:openapi|swagger)"?\s*:`)

// describesInterface reports whether the beginning of a file says so.
func describesInterface(root *os.Root, name string) bool {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head)
	return interfaceKey.Match(head[:n])
}

// secretNames are patterns over lower-case file names of what should not get
// into an index; names that begin with a dot are out anyway.
var secretNames = []string{
	"*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg", "*.env", "*.env.*",
	".env*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials*", "secrets.*", "*.tfstate", "*.tfstate.*",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".dockercfg",
	"client_secret*", "service-account*.json", "service_account*.json",
}

// isRepository reports whether a root is the top of a git repository, or of one of its
// worktrees, where .git is a file.
func isRepository(root *os.Root) bool {
	_, err := root.Lstat(".git")
	return err == nil
}

// extensions are those that are indexed, in lower case.
func (o *Options) extensions() map[string]bool {
	exts := map[string]bool{}
	list := o.Extensions
	if list == nil {
		list = Documents
	}
	for _, e := range list {
		exts[strings.ToLower(e)] = true
	}
	return exts
}

// Wants returns what says of a file name whether its extension is one that is
// indexed, or the file says what is ignored: changes of others change no index.
func (o *Options) Wants() func(name string) bool {
	if o == nil {
		o = &Options{}
	}
	exts := o.extensions()
	return func(name string) bool {
		return exts[strings.ToLower(path.Ext(name))] || IsIgnoreFile(name) || IsConfiguration(name) || o.Code != CodeOff && code.IsSource(name)
	}
}

// isVendored reports whether a file is in a folder of vendored.
func isVendored(p string) bool {
	for dir := range strings.SplitSeq(path.Dir(p), "/") {
		if slices.Contains(vendored, dir) {
			return true
		}
	}
	return false
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, pattern := range secretNames {
		// Compare the literal ends first: matching all patterns took a quarter of a walk.
		head, _, _ := strings.Cut(pattern, "*")
		tail := pattern[strings.LastIndexByte(pattern, '*')+1:]
		if strings.HasPrefix(name, head) && strings.HasSuffix(name, tail) && doublestar.MatchUnvalidated(pattern, name) {
			return true
		}
	}
	return false
}
