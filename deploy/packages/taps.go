package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

// taps makes a Homebrew formula and a Scoop manifest, which contain the addresses and
// checksums of the archives. It returns nil if the address of the release is unknown.
func taps(r release) (map[string][]byte, error) {
	if r.url == "" {
		return nil, nil
	}
	manifest := scoop{Version: r.version, Description: summary, Homepage: r.homepage(), License: "Apache-2.0", Bin: "cairn.exe", Architecture: map[string]scoopArchive{}}
	formula := homebrew{Description: summary, Homepage: r.homepage(), Version: r.version}
	for _, p := range platforms {
		a, ok := r.archives[p]
		if !ok {
			continue
		}
		at, sum := r.url+"/"+a.name, fmt.Sprintf("%x", sha256.Sum256(a.data))
		switch p.os {
		case "windows":
			name := map[string]string{"amd64": "64bit", "arm64": "arm64"}[p.arch]
			manifest.Architecture[name] = scoopArchive{at, sum, strings.TrimSuffix(a.name, ".zip")}
		default:
			formula.Archives = append(formula.Archives, brewArchive{
				OS: map[string]string{"darwin": "macos", "linux": "linux"}[p.os], CPU: map[string]string{"amd64": "intel", "arm64": "arm"}[p.arch], URL: at, Sum: sum})
		}
	}
	var ruby bytes.Buffer
	if err := formulaText.Execute(&ruby, formula); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(manifest, "", "    ")
	return map[string][]byte{"cairn.rb": ruby.Bytes(), "cairn.json": append(text, '\n')}, err
}

// A scoop is a manifest of Scoop.
type scoop struct {
	Version      string                  `json:"version"`
	Description  string                  `json:"description"`
	Homepage     string                  `json:"homepage"`
	License      string                  `json:"license"`
	Architecture map[string]scoopArchive `json:"architecture"`
	Bin          string                  `json:"bin"`
}

type scoopArchive struct {
	URL    string `json:"url"`
	Hash   string `json:"hash"`
	Folder string `json:"extract_dir"`
}

// A homebrew is the data of a formula.
type homebrew struct {
	Description, Homepage, Version string
	Archives                       []brewArchive
}

type brewArchive struct{ OS, CPU, URL, Sum string }

var formulaText = template.Must(template.New("").Parse(`class Cairn < Formula
  desc {{printf "%q" .Description}}
  homepage {{printf "%q" .Homepage}}
  version {{printf "%q" .Version}}
  license "Apache-2.0"
{{range .Archives}}
  on_{{.OS}} do
    on_{{.CPU}} do
      url {{printf "%q" .URL}}
      sha256 {{printf "%q" .Sum}}
    end
  end
{{end}}
  def install
    bin.install "cairn"
    man1.install Dir["man1/*"]
    bash_completion.install "completions/cairn.bash" => "cairn"
    zsh_completion.install "completions/_cairn"
    fish_completion.install "completions/cairn.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/cairn --version")
  end
end
`))
