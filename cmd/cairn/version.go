package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"cairn/models/bert"
)

// version is set by the linker for releases.
var version = ""

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the built-in model and the kernels this machine runs",
		Args:  cobra.NoArgs,
		RunE: a.command(func(context.Context, []string) error {
			v := struct {
				Version string   `json:"version"`
				Go      string   `json:"go"`
				System  string   `json:"system"`
				Model   string   `json:"model"`
				Kernels []string `json:"kernels"`
				Lacking []string `json:"lacking"`
			}{versionName(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, builtIn().ID, bert.Kernels(), lacking(bert.Kernels())}
			if a.json {
				return a.printJSON(v)
			}
			fmt.Fprintf(a.stdout, "cairn %s (%s, %s)\nmodel   %s\nkernels %v; this machine lacks %v\n", v.Version, v.Go, v.System, v.Model, v.Kernels, v.Lacking)
			return nil
		}),
	}
}

// versionName is the release, else the module's version, else the commit.
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

// lacking lists the kernels that exist and that this machine cannot run.
func lacking(have []string) []string {
	lacks := []string{}
	for _, k := range []string{"avx512vnni", "avx2", "portable"} {
		found := false
		for _, h := range have {
			found = found || h == k
		}
		if !found {
			lacks = append(lacks, k)
		}
	}
	return lacks
}
