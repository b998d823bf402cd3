package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/models/bert"
	"cairn/models/minilm"
)

// version is set by the linker for releases.
var version = ""

func versionCommand(a *cli.App) *cobra.Command {
	return cli.NewCommand("version", "Print the version, the built-in model and the kernels of this machine",
		a.Command(func(context.Context, []string) error {
			v := struct {
				Version string   `json:"version"`
				Go      string   `json:"go"`
				System  string   `json:"system"`
				Model   string   `json:"model"`
				Kernels []string `json:"kernels"`
				Lacking []string `json:"lacking"`
			}{a.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, minilm.Description().ID, bert.Kernels(), lacking(bert.Kernels())}
			kernels := strings.Join(v.Kernels, ", ")
			if len(v.Lacking) > 0 {
				kernels += "; not on this machine: " + strings.Join(v.Lacking, ", ")
			}
			return a.Out.Line(v, "cairn %s (%s, %s)\nmodel   %s\nkernels %s", v.Version, v.Go, v.System, v.Model, kernels)
		}))
}

// versionName returns the release, else the module's version, else the commit.
func versionName() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// lacking returns the kernels for this architecture that this machine cannot run.
func lacking(have []string) []string {
	all := map[string][]string{"amd64": {"amx", "avx512vnni", "avx2"}, "arm64": {"neon"}}[runtime.GOARCH]
	return slices.DeleteFunc(all, func(k string) bool { return slices.Contains(have, k) })
}
