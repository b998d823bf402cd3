package care

import (
	"context"
	"errors"
	"os"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/upgrade"
)

// releaseFeed and releaseKey are set when a release is built, with -ldflags -X. The
// environment overrides them.
var releaseFeed, releaseKey string

func (a *app) upgradeCommand() *cli.Command {
	var check, force bool
	cmd := cli.NewCommand("upgrade", "Replace this program with a newer release from the configured feed",
		a.Command(func(ctx context.Context, _ []string) error {
			o := upgrade.Options{Feed: releaseFeed, Key: releaseKey, Version: a.Version, Force: force}
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
			}](err); ok && a.Out.JSON {
				if err := a.Out.Encode(map[string]any{"code": coded.Code(), "message": err.Error(), "data": coded}); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			switch {
			case r.Installed:
				return a.Out.Line(r, "%s is now %s, it was %s", r.Program, r.Latest, r.Current)
			case r.Newer:
				return a.Out.Line(r, "%s is available, this is %s; cairn upgrade installs it", r.Latest, r.Current)
			case r.Unversioned:
				return a.Out.Line(r, "the feed has %s; this build has no version to compare, and `cairn upgrade --force` replaces it", r.Latest)
			}
			return a.Out.Line(r, "this is %s; the feed has %s, which is not newer", r.Current, r.Latest)
		}))
	cmd.Flags().BoolVar(&check, "check", false, "only report whether there is a newer release")
	cmd.Flags().BoolVar(&force, "force", false, "install the feed's release even if it is not newer")
	return cmd
}
