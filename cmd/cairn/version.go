package main

import (
	"cmp"
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

// version and commit are set by the linker for releases.
var version, commit string

func versionCommand(a *cli.App) *cobra.Command {
	return cli.NewCommand("version", "Print the version and its commit, the built-in model and the kernels of this machine",
		a.Command(func(context.Context, []string) error {
			lacking := map[string][]string{"amd64": {"amx", "avx512vnni", "avx2"}, "arm64": {"neon"}}[runtime.GOARCH]
			lacking = slices.DeleteFunc(lacking, func(k string) bool { return slices.Contains(bert.Kernels(), k) })
			v := struct {
				Version string   `json:"version"`
				Commit  string   `json:"commit"`
				Go      string   `json:"go"`
				System  string   `json:"system"`
				Model   string   `json:"model"`
				Kernels []string `json:"kernels"`
				Lacking []string `json:"lacking"`
			}{a.Version, commitName(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, minilm.Description().ID, bert.Kernels(), lacking}
			kernels := strings.Join(v.Kernels, ", ")
			if len(v.Lacking) > 0 {
				kernels += "; not on this machine: " + strings.Join(v.Lacking, ", ")
			}
			return a.Out.Line(v, "cairn %s (commit %s, %s, %s)\nmodel   %s\nkernels %s", v.Version, v.Commit, v.Go, v.System, v.Model, kernels)
		}))
}

// commitName returns the commit of this program, with "+" if it contains other changes.
func commitName() string {
	name, changes := commit, ""
	if info, ok := debug.ReadBuildInfo(); ok && name == "" {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				name = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changes = "+"
			}
		}
	}
	return cmp.Or(name[:min(len(name), 12)], "unknown") + changes
}

// versionName returns the release, else the module's version.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
