package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/connect"
	"cairn/internal/face/service"
)

func (a *app) serviceCommand() *cli.Command {
	address := "127.0.0.1:7420"
	install := cli.NewCommand("install [flags] [NAME=DIR...]", "Start cairn serve with these folders now and at each login", a.withManager(func(m *service.Manager, args []string) error {
		return a.installService(m, args, address)
	}))
	install.Flags().StringVar(&address, "addr", address, "address to listen on")
	status := cli.NewCommand("status", "Report whether the service is installed and running", a.withManager(func(m *service.Manager, _ []string) error {
		installed, running := m.Installed(), m.Running()
		err := a.Out.Line(map[string]any{"path": m.File, "installed": installed, "running": running}, "installed: %t, running: %t, %s", installed, running, m.File)
		if err == nil && !(installed && running) {
			err = errors.New("the service does not run")
		}
		return err
	}))
	remove := cli.NewCommand("remove", "Stop the service and remove it", a.withManager(func(m *service.Manager, _ []string) error {
		removed, err := m.Remove()
		if err != nil {
			return err
		}
		return a.Out.Line(map[string]any{"path": m.File, "removed": removed}, "removed: %t, %s", removed, m.File)
	}))
	return cli.Group("service", "Serve folders from login on, and keep their indexes fresh", install, status, remove)
}

func (a *app) installService(m *service.Manager, args []string, address string) error {
	if len(args) == 0 {
		sel, err := a.Selection()
		if err != nil {
			return err
		}
		a.Dir, args = "", []string{"default=" + sel.Root}
	}
	places, err := a.places(args)
	if err != nil {
		return err
	}
	u := service.Unit{Program: connect.Program(true), Args: []string{"serve", "--addr", address}, Env: map[string]string{}}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "CAIRN_") || strings.HasPrefix(name, "CUEDECK_") {
			u.Env[name] = value
		}
	}
	for _, p := range places {
		dir, err := filepath.Abs(p.dir)
		if err != nil {
			return err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return cli.BadUsage("%s is not a folder", dir)
		}
		u.Args = append(u.Args, p.name+"="+dir)
	}
	if err := m.Install(u); err != nil {
		return err
	}
	return a.Out.Line(map[string]any{"path": m.File, "address": address}, "added %s, which serves %s at http://%s now and after each login", m.File, strings.Join(u.Args[3:], ", "), address)
}

// withManager calls fn with the manager of services of this system.
func (a *app) withManager(fn func(m *service.Manager, args []string) error) func(*cli.Command, []string) error {
	return a.Command(func(ctx context.Context, args []string) error {
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		config, err := os.UserConfigDir()
		if err != nil {
			return err
		}
		m, err := service.For(runtime.GOOS, home, config, os.Getuid(), func(args ...string) error {
			out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
			if text := strings.TrimSpace(string(out)); err != nil && text != "" {
				err = fmt.Errorf("%w: %s", err, text)
			}
			return err
		})
		if err != nil {
			return err
		}
		return fn(m, args)
	})
}
