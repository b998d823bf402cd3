package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/upgrade"
	"cairn/models/bert"
	"cairn/models/minilm"
)

// version is set by the linker for releases.
var version = ""

func (a *app) versionCommand() *cobra.Command {
	return newCommand("version", "Print the version, the built-in model and the kernels of this machine",
		a.command(func(context.Context, []string) error {
			v := struct {
				Version string   `json:"version"`
				Go      string   `json:"go"`
				System  string   `json:"system"`
				Model   string   `json:"model"`
				Kernels []string `json:"kernels"`
				Lacking []string `json:"lacking"`
			}{versionName(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, minilm.Description().ID, bert.Kernels(), lacking(bert.Kernels())}
			kernels := strings.Join(v.Kernels, ", ")
			if len(v.Lacking) > 0 {
				kernels += "; not on this machine: " + strings.Join(v.Lacking, ", ")
			}
			return a.printLine(v, "cairn %s (%s, %s)\nmodel   %s\nkernels %s", v.Version, v.Go, v.System, v.Model, kernels)
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
	all := map[string][]string{"amd64": {"avx512vnni", "avx2"}, "arm64": {"neon"}}[runtime.GOARCH]
	return slices.DeleteFunc(all, func(k string) bool { return slices.Contains(have, k) })
}

// releaseFeed and releaseKey are set when a release is built, with -ldflags -X. The
// environment overrides them.
var releaseFeed, releaseKey string

func (a *app) upgradeCommand() *cobra.Command {
	var check, force bool
	cmd := newCommand("upgrade", "Replace this program with a newer release from the configured feed",
		a.command(func(ctx context.Context, _ []string) error { return a.upgrade(ctx, check, force) }))
	cmd.Flags().BoolVar(&check, "check", false, "only report whether there is a newer release")
	cmd.Flags().BoolVar(&force, "force", false, "install the feed's release even if it is not newer")
	return cmd
}

func (a *app) upgrade(ctx context.Context, check, force bool) error {
	o := upgrade.Options{Feed: releaseFeed, Key: releaseKey, Version: versionName(), Force: force}
	if feed := os.Getenv("CAIRN_RELEASE_FEED"); feed != "" {
		o.Feed, o.Key = feed, os.Getenv("CAIRN_RELEASE_KEY")
	}
	work := upgrade.Install
	if check {
		work = upgrade.Check
	}
	r, err := work(ctx, o)
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok && a.json {
		if err := a.stdout.JSON(map[string]any{"code": coded.Code(), "message": err.Error(), "data": coded}); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	switch {
	case r.Installed:
		return a.printLine(r, "%s is now %s, it was %s", r.Program, r.Latest, r.Current)
	case r.Newer:
		return a.printLine(r, "%s is available, this is %s; cairn upgrade installs it", r.Latest, r.Current)
	}
	return a.printLine(r, "this is %s; the feed has %s, which is not newer", r.Current, r.Latest)
}
