package walk

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"cairn/internal/text/outline"
)

// Code selects the roots in which source code is indexed. Vendored code never is.
type Code uint8

// The values of Code.
const (
	CodeOff  Code = iota // no root
	CodeAuto             // roots that are git repositories or have build files or sources: see hasCode
	CodeOn               // all roots
)

// vendored are names of folders that hold copies of other projects.
var vendored = []string{"third_party", "third-party", "thirdparty", "bower_components", "site-packages", "_vendor", "Pods", "Carthage"}

// Configuration lists patterns of the lower-case names of configuration files, which are
// always indexed up to maxConfiguration bytes, unless they are generated. Other files with
// these extensions are data.
var Configuration = []string{
	"*.yaml", "*.yml", "*.toml", "*config*.json", "*settings*.json", "*openapi*.json", "*swagger*.json", "package.json",
	"composer.json", "manifest.json", "deno.json", "lerna.json", "nx.json", "turbo.json", "vercel.json", "firebase.json",
	"angular.json", "app.json", "project.json", "launch.json", "tasks.json", "docker-compose*.json",
}

// maxConfiguration bounds the size of a configuration file in bytes; larger files are data.
// Descriptions of interfaces, such as openapi.yaml, may be larger.
const maxConfiguration = 256 << 10

// generated lists patterns of the lower-case names of files that tools write.
var generated = []string{
	"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "*-lock.json", "*-lock.yaml", "*-lock.yml", "*.lock.*", "*.min.*",
}

// IsConfiguration reports whether a file name or path matches Configuration.
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

// isInterface reports whether the name of a file suggests that it describes an interface.
func isInterface(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "openapi") || strings.Contains(name, "swagger")
}

// interfaceKey matches the beginning of an OpenAPI description in YAML or JSON.
var interfaceKey = regexp.MustCompile(`^(?:\s|#.*\n|---|\{)*"?(?:openapi|swagger)"?\s*:`)

// describesInterface reports whether a file begins like an OpenAPI description.
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

// secretNames lists patterns of the lower-case names of files that may hold secrets. Names
// that begin with a dot are hidden anyway, except with Options.Everything.
var secretNames = []string{
	"*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg", "*.env", "*.env.*",
	".env*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials*", "secrets.*", "*.tfstate", "*.tfstate.*",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".dockercfg",
	"client_secret*", "service-account*.json", "service_account*.json",
}

// builds lists the names of files with which programs are built.
var builds = []string{"go.mod", "package.json", "Cargo.toml", "pyproject.toml", "setup.py", "pom.xml", "build.gradle", "build.gradle.kts", "CMakeLists.txt", "composer.json", "Gemfile", "Package.swift", "build.sbt"}

// assets lists the extensions of source code that notes and manuals contain, too.
var assets = []string{".css", ".scss", ".less", ".mk", ".dockerfile"}

// maxLook is the most entries that hasCode looks at, nearest to the top first.
const maxLook = 2000

// hasCode reports whether a root is a project with source code: a git repository or one of
// its worktrees, where .git is a file, or a folder with a build file or a source file.
func hasCode(root *os.Root) bool {
	if _, err := root.Lstat(".git"); err == nil {
		return true
	}
	looked := 0
	for dirs := []string{"."}; len(dirs) > 0 && looked < maxLook; dirs = dirs[1:] {
		entries, _ := fs.ReadDir(root.FS(), dirs[0])
		for _, e := range entries {
			looked++
			switch name := e.Name(); {
			case strings.HasPrefix(name, "."):
			case e.IsDir() && !slices.Contains(skipDirs, name) && !slices.Contains(vendored, name):
				dirs = append(dirs, path.Join(dirs[0], name))
			case e.Type().IsRegular() && (outline.IsSource(name) && !slices.Contains(assets, outline.Ext(name)) || slices.Contains(builds, name)):
				return true
			}
		}
	}
	return false
}

// extensions is a set of extensions in lower case.
type extensions map[string]bool

// has reports whether the extension of a name, or that of its format, is in the set.
func (s extensions) has(name string) bool {
	return s[outline.Ext(name)] || s[strings.ToLower(path.Ext(name))]
}

// extensions returns the indexed extensions.
func (o *Options) extensions() extensions {
	exts := extensions{}
	for _, e := range o.Extensions {
		exts[strings.ToLower(e)] = true
	}
	return exts
}

// Wants returns a function that reports whether a file of that name can change the index:
// it is an ignore file, or its name is that of a file to index.
func (o *Options) Wants() func(name string) bool {
	o = cmp.Or(o, &Options{})
	exts := o.extensions()
	return func(name string) bool {
		return exts.has(name) || IsIgnoreFile(name) || IsConfiguration(name) || o.Code != CodeOff && outline.IsSource(name)
	}
}

// IsOurs reports whether a hidden file or folder belongs to cairn or is an ignore file.
func IsOurs(name string) bool {
	return IsIgnoreFile(name) || slices.ContainsFunc(strings.Split(name, "/"), func(e string) bool { return e == ".cairn" || e == ".cuedeck" })
}

// IsHidden reports whether an element of a path begins with a dot, apart from one of the folders
// at its beginning.
func IsHidden(name string, folders []string) bool {
	for _, folder := range folders {
		if rest, ok := strings.CutPrefix(name, folder+"/"); ok {
			name = rest
			break
		}
	}
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// isVendored reports whether a file is in one of the vendored folders.
func isVendored(p string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(p), "/"), func(dir string) bool { return slices.Contains(vendored, dir) })
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, pattern := range secretNames {
		// Compare the literal ends first: matching all patterns took a quarter of the time of a walk.
		head, _, _ := strings.Cut(pattern, "*")
		tail := pattern[strings.LastIndexByte(pattern, '*')+1:]
		if strings.HasPrefix(name, head) && strings.HasSuffix(name, tail) && doublestar.MatchUnvalidated(pattern, name) {
			return true
		}
	}
	return false
}
