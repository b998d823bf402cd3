package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// listed is a package as go list describes it.
type listed struct {
	Dir, ImportPath, Name string
	GoFiles               []string
	ImportMap             map[string]string
	Module                *struct{ Main bool }
}

// TestEverySystem: the program has no type error on any system of a release. The test reads
// the types of dependencies without the bodies of their functions, in a tenth of the time
// of a compilation for each system.
func TestEverySystem(t *testing.T) {
	files := sourceFiles{fset: token.NewFileSet(), parsed: map[string]*ast.File{}}
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		goos, goarch, _ := strings.Cut(system, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,ImportPath,Name,GoFiles,ImportMap,Module", "./...")
		cmd.Dir, cmd.Stderr = filepath.Join("..", "..", ".."), os.Stderr
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		checked := map[string]*types.Package{"unsafe": types.Unsafe}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p listed
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.ImportPath == "unsafe" {
				continue
			}
			own := p.Module != nil && p.Module.Main
			conf := types.Config{
				IgnoreFuncBodies: !own, FakeImportC: true, Sizes: types.SizesFor("gc", goarch),
				Importer: importer(func(path string) (*types.Package, error) {
					if to, ok := p.ImportMap[path]; ok {
						path = to
					}
					if found := checked[path]; found != nil {
						return found, nil
					}
					return nil, errors.New("go list does not name it as a dependency")
				}),
				Error: func(err error) { t.Errorf("%s: %v", system, err) },
			}
			checked[p.ImportPath], _ = conf.Check(p.ImportPath, files.fset, files.of(t, &p), nil) // Error has the errors
		}
		if len(checked) < 500 {
			t.Errorf("%s: %d packages, want those of the program", system, len(checked))
		}
	}
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// sourceFiles holds the parsed files of all systems.
type sourceFiles struct {
	fset   *token.FileSet
	parsed map[string]*ast.File
}

// of returns the parsed files of p. All processors read those that are new.
func (s *sourceFiles) of(t *testing.T, p *listed) []*ast.File {
	all := make([]*ast.File, len(p.GoFiles))
	var reading sync.WaitGroup
	for i, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		if all[i] = s.parsed[path]; all[i] != nil {
			continue
		}
		reading.Go(func() {
			f, err := parser.ParseFile(s.fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
			}
			all[i] = f
		})
	}
	reading.Wait()
	for i, name := range p.GoFiles {
		s.parsed[filepath.Join(p.Dir, name)] = all[i]
	}
	return all
}
