package folder

import (
	"context"
	"path/filepath"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/home"
	"cairn/internal/face/term"
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
	if err := home.Trust(root, trusted); err != nil {
		return err
	}
	format := "trusted: %s"
	if !trusted {
		format = "no longer trusted: %s"
	}
	return a.Out.Line(map[string]any{"workspace": root, "trusted": trusted}, format, term.Plain(root))
}
