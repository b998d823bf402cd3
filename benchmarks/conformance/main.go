//lint:file-ignore SA1019 the suite asks for logging, which revision 2026-07-28 deprecates

// Command conformance serves a folder with cairn's HTTP server and adds the
// tools, prompts and resources that the official conformance suite of the Model
// Context Protocol calls. run.sh starts it and runs the suite against it. It is
// not part of the product.
//
//	go run ./benchmarks/conformance FOLDER
//
// It prints its URL on standard output and serves until it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/face/server"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/models"
	"cairn/models/minilm"
	"cairn/tools"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run serves dir until ctx ends.
func run(ctx context.Context, dir string) (err error) {
	sel, err := config.Select(config.SelectOptions{Flag: dir})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	w, err := workspace.Open(ctx, sel, config.Default(), workspace.Owning, workspace.Options{
		Command: "conformance", Description: minilm.Description(), Background: true, Watch: true, Logger: log,
		Model: func() (models.Embedder, error) { return minilm.Open(nil) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	t := tools.New(w.Folder, &tools.Options{NoRateLimit: true, Status: index.StatusRequest{Selection: sel}, Scan: w.Scan, Watch: w.Watch, Logger: log, Extend: extend})
	s, err := server.New([]server.Workspace{{Name: "default", Folder: w.Folder, Tools: t}}, &server.Options{Logger: log})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	if err := s.Serve(ctx, l); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// extend declares the capabilities that the suite requires, and returns the function that
// adds the fixtures.
func extend(o *mcp.ServerOptions) func(*mcp.Server) (stop func()) {
	o.Capabilities.Logging = &mcp.LoggingCapabilities{}
	o.Capabilities.Tools.ListChanged = true
	o.Capabilities.Prompts.ListChanged = true
	return register
}
