package folder

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/face/term"
	"cairn/internal/folder/config"
)

func (a *app) trustCommand() *cli.Command {
	var remove bool
	cmd := cli.NewCommand("trust [DIR]", "Trust the configuration of a folder, or list the trusted folders",
		a.Command(func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return a.trust(args[0], !remove)
			}
			if remove {
				return cli.BadUsage("--remove needs a folder, as in: cairn trust --remove ~/notes")
			}
			folders, err := home.TrustedFolders()
			if err != nil {
				return err
			}
			return a.Out.Print(map[string]any{"trusted": folders}, func() {
				if len(folders) == 0 {
					a.Out.Notes.Printf("no folder is trusted; trust one with `cairn trust DIR`\n")
				}
				for _, folder := range folders {
					a.Out.Printf("%s\n", term.Plain(folder))
				}
			})
		}))
	cmd.Flags().BoolVar(&remove, "remove", false, "stop trusting the folder")
	return cmd
}

func (a *app) trust(dir string, trusted bool) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	} else if trusted { // a missing folder can still be removed from the list
		return err
	}
	done := map[string]any{"workspace": root, "trusted": trusted}
	if !trusted {
		if err := home.Distrust(root); err != nil {
			return err
		}
		return a.Out.Line(done, "no longer trusted: %s", term.Plain(root))
	}
	settings, err := config.Trust(root)
	if err != nil {
		return err
	}
	done["settings"] = settings
	return a.Out.Print(done, func() {
		a.Out.Printf("trusted: %s\n", term.Plain(root))
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			a.Out.Printf("  %s = %s\n", key, term.Plain(fmt.Sprint(settings[key])))
		}
		a.Out.Notes.Printf("a change of its configuration that `cairn config set` does not make ends the trust\n")
	})
}
