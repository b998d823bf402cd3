// Package agents holds the commands that connect agents and serve folders to them.
package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cairn/cmd/cairn/internal/catalogue"
	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/tasks"
	"cairn/internal/base/home"
	"cairn/internal/face/connect"
	"cairn/skills"
	"cairn/tools"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.connectCommand(), a.disconnectCommand(), a.mcpCommand(), a.serveCommand(), a.serviceCommand(), a.tokenCommand(), tasks.Scene(c)}
}

// connectFlags are the flags of connect and disconnect.
type connectFlags struct {
	name, tools                            string
	print, force, noGuide, accept, gateway bool
}

func (a *app) connectCommand() *cli.Command {
	var f connectFlags
	cmd := cli.NewCommand("connect [CLIENT]", "Add cairn to the configuration of an MCP client",
		func(cmd *cli.Command, args []string) error {
			return a.Command(func(_ context.Context, args []string) error { return a.connect(cmd, args, f) })(cmd, args)
		})
	f.register(cmd)
	cmd.Flags().BoolVar(&f.gateway, "gateway", false, "move the other servers of the client into cairn, which calls their tools; disconnect moves them back")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the texts to paste, and write nothing")
	cmd.Flags().StringVar(&f.tools, "tools", "", "tools to offer, as for cairn mcp (default: mcp.tools)")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace a server of this name that is not cairn in this folder")
	cmd.Flags().BoolVar(&f.noGuide, "no-guide", false, "do not write the block into AGENTS.md, CLAUDE.md and similar files, nor the skill and the hook")
	return cmd
}

// register adds the client names and the flags that connect and disconnect share.
func (f *connectFlags) register(cmd *cli.Command) {
	cmd.ValidArgs = connect.Names()
	cmd.Flags().StringVar(&f.name, "name", "cairn", "name of the server in the client; each folder needs its own")
	cmd.Flags().BoolVarP(&f.accept, "yes", "y", false, "do not ask before writing")
}

func (a *app) connect(cmd *cli.Command, args []string, f connectFlags) error {
	if f.name == "" || strings.ContainsFunc(f.name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return cli.BadUsage("--name is %q, want a word", f.name)
	}
	if f.tools != "" {
		if _, err := tools.ParseGroups(f.tools); err != nil {
			return cli.BadUsage("--tools: %w", err)
		}
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		c, err := connect.ByName(args[0])
		if err != nil {
			return cli.BadUsage("%w", err)
		}
		return a.connectClient(cmd, c, p, f)
	}
	if f.gateway {
		return cli.BadUsage("--gateway wants a CLIENT")
	}
	chosen, err := a.chooseClients(p, f)
	for _, c := range chosen {
		err = errors.Join(err, a.connectClient(cmd, c, p, f))
	}
	return err
}

// place locates the configuration files of clients.
func (a *app) place() (connect.Place, error) {
	sel, _, err := a.Choose()
	if err != nil {
		return connect.Place{}, err
	}
	return connect.PlaceOf(sel.Root), nil
}

// chooseClients asks the user which of the installed clients to connect.
func (a *app) chooseClients(p connect.Place, f connectFlags) ([]connect.Client, error) {
	found := connect.Installed(p)
	if len(found) == 0 {
		return nil, cli.BadUsage("found no MCP client on this machine; name one of {%s}", strings.Join(connect.Names(), ","))
	}
	var names []string
	for _, c := range found {
		names = append(names, c.Name)
	}
	if f.accept && !f.print {
		return found, nil
	}
	if f.print || !a.Asks() {
		return nil, cli.BadUsage("name a client: cairn connect CLIENT, or add --yes for all; installed here: %s", strings.Join(names, ", "))
	}
	a.Out.Printf("Found on this machine:\n")
	for i, c := range found {
		a.Out.Printf("  %d  %s\n", i+1, c.Title)
	}
	answer, err := a.Prompt("Connect which? Numbers, or Enter for all: ")
	if err != nil || answer == "" {
		return found, err
	}
	var chosen []connect.Client
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' }) {
		i := slices.Index(names, word)
		if n, err := strconv.Atoi(word); err == nil {
			i = n - 1
		}
		if i < 0 || i >= len(found) {
			return nil, cli.BadUsage("%q is not one of 1 to %d", word, len(found))
		}
		chosen = append(chosen, found[i])
	}
	return chosen, nil
}

// connected is what connect and disconnect did for one client.
type connected struct {
	*connect.Result
	Moved []string        `json:"moved,omitempty"` // the servers that cairn has taken over
	Guide *connect.Result `json:"guide,omitempty"`
	Skill *connect.Result `json:"skill,omitempty"`
	Hook  *connect.Result `json:"hook,omitempty"`
}

// fileOf returns the client's file at path, with the directory for the copies of such files.
func fileOf(p connect.Place, path string) (connect.File, error) {
	copies, err := home.Data("connect")
	return connect.File{Root: p.Root, Path: path, Copies: copies}, err
}

func (a *app) connectClient(cmd *cli.Command, c connect.Client, p connect.Place, f connectFlags) error {
	path, err := c.File(p)
	if err != nil {
		return err
	}
	var further []string
	if f.tools != "" {
		further = []string{"--tools", f.tools}
	}
	entry := c.Entry(c.Program(), p.Root, further...)
	if f.print {
		return a.printConnection(c, f, path, entry)
	}
	at, err := fileOf(p, path)
	if err != nil {
		return err
	}
	var others []connect.Configured
	var names []string
	if f.gateway {
		if others, err = c.Servers(at); err != nil {
			return err
		}
		for _, s := range others {
			names = append(names, s.Name)
		}
	}
	config, err := c.Add(at, f.name, entry, f.force, names...)
	if _, ok := errors.AsType[*connect.UnsuitableError](err); ok {
		a.Out.Printf("%s", c.Text(f.name, entry))
	}
	if err != nil {
		return err
	}
	guide, skill, hook, err := a.guidance(c, p, at, f)
	if err != nil {
		return err
	}
	var did connected
	if len(others) > 0 {
		if did.Moved, err = catalogue.TakeOver(cmd, a.App, others, "Start them, add them to cairn, and remove them from "+path+"?", f.accept); err != nil || did.Moved == nil {
			return err
		}
		if config, err = c.Add(at, f.name, entry, f.force, did.Moved...); err != nil {
			return err
		}
	}
	for _, w := range []struct {
		change *connect.Change
		did    **connect.Result
	}{{config, &did.Result}, {guide, &did.Guide}, {skill, &did.Skill}, {hook, &did.Hook}} {
		if *w.did, err = w.change.Write(); err != nil {
			return err
		}
	}
	return a.Out.Print(did, func() {
		switch {
		case !did.Changed:
			a.Out.Printf("%s has this entry already: %s\n", c.Title, did.Path)
		case did.Backup != "":
			a.Out.Printf("added to %s for %s; a copy of the old file is %s\n", did.Path, c.Title, did.Backup)
		default:
			a.Out.Printf("added to %s for %s\n", did.Path, c.Title)
		}
		if len(did.Moved) > 0 {
			a.Out.Printf("cairn takes the place of %s\n", strings.Join(did.Moved, ", "))
		}
		for i, r := range []*connect.Result{did.Guide, did.Skill, did.Hook} {
			if r != nil && r.Changed {
				a.Out.Printf("added %s%s\n", []string{"to ", "", "to "}[i], r.Path)
			}
		}
		if did.Changed {
			a.Out.Notes.Dim(fmt.Sprintf("restart %s to use cairn; `cairn disconnect %s` removes it", c.Title, c.Name))
		}
	})
}

// guidance returns the changes that tell the client's model of cairn: lines in the file of
// instructions, a skill and a hook. They are nil if the user does not want them.
func (a *app) guidance(c connect.Client, p connect.Place, at connect.File, f connectFlags) (guide, skill, hook *connect.Change, err error) {
	if f.noGuide {
		return nil, nil, nil, nil
	}
	text, err := skills.Files.ReadFile("cairn/SKILL.md")
	if err == nil {
		skill, err = c.Skill(at, text)
	}
	if err == nil {
		hook, err = c.Hook(at, c.Program())
	}
	if err == nil {
		guide, err = c.AddGuide(p.Root, f.name)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w; or use --no-guide", err)
	}
	if skill.Changes() && !a.Out.JSON {
		a.Out.Printf("+++ %s\n", skill.Path)
	}
	if hook.Changes() && !a.Out.JSON {
		a.Out.Printf("%s", hook.Diff())
	}
	if guide, err = a.agreed(guide, f); guide == nil {
		return nil, nil, nil, err // one answer is for all
	}
	return guide, skill, hook, err
}

// printConnection prints what connect would write.
func (a *app) printConnection(c connect.Client, f connectFlags, path string, entry connect.Entry) error {
	text := map[string]any{"client": c.Name, "path": path, "text": c.Text(f.name, entry)}
	guided := c.Guide != "" && !f.noGuide
	if guided {
		text["guide_path"], text["guide"] = c.Guide, connect.Guide(f.name)
	}
	return a.Out.Print(text, func() {
		a.Out.Notes.Printf("for %s:\n", path)
		a.Out.Printf("%s", c.Text(f.name, entry))
		if guided {
			a.Out.Notes.Printf("for %s:\n", c.Guide)
			a.Out.Printf("%s", connect.Guide(f.name))
		}
	})
}

// agreed prints a change and asks the user to confirm it. It returns nil for a change that
// the user declines.
func (a *app) agreed(change *connect.Change, f connectFlags) (*connect.Change, error) {
	if a.Out.JSON || !change.Changes() {
		return change, nil
	}
	a.Out.Printf("%s", change.Diff())
	if f.accept || !a.Asks() {
		return change, nil
	}
	answer, err := a.Prompt("Write this? [Y/n] ")
	if err != nil || strings.HasPrefix(strings.ToLower(answer), "n") {
		return nil, err
	}
	return change, nil
}
