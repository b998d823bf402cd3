//lint:file-ignore SA1019 the suite asks for logging, which revision 2026-07-28 deprecates

package conformance

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/testutil"
	"cairn/internal/face/server"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/models"
	"cairn/models/minilm"
	"cairn/tools"
	"cairn/tools/mcptask"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestSuite passes if the suite accepts each revision: all scenarios that the revision
// requires have to pass. CAIRN_CONFORMANCE is the folder into which run.sh installs the suite
// and its Node.js. If KEEP is set, the outputs stay in the files $KEEP-REVISION.txt.
func TestSuite(t *testing.T) {
	dir := os.Getenv("CAIRN_CONFORMANCE")
	if dir == "" {
		t.Skip("CAIRN_CONFORMANCE names no folder with the conformance suite of MCP, which run.sh installs")
	}
	modules := filepath.Join(dir, "node_modules")
	url := serve(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(modules, "node", "bin", "node"),
			filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"), "server", "--url", url+"/mcp", "--requirements", revision)
		cmd.Dir = t.TempDir() // the suite leaves its results there
		out, err := cmd.CombinedOutput()
		if keep := os.Getenv("KEEP"); keep != "" {
			err = errors.Join(err, os.WriteFile(keep+"-"+revision+".txt", out, 0o644))
		}
		if at := strings.Index(string(out), "SUMMARY"); at >= 0 && err == nil {
			out = out[at:]
		}
		t.Logf("conformance %s\n%s", revision, out)
		if err != nil {
			t.Errorf("conformance %s: the suite ends with %v", revision, err)
		}
	}
}

// serve serves the handbook and the fixtures until the end of the test. It returns the URL.
func serve(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("../../examples/handbook")); err != nil {
		t.Fatal(err)
	}
	sel, err := config.Select(root)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, stop := context.WithCancel(context.Background())
	w, err := workspace.Open(ctx, sel, config.Default(), workspace.Owning, workspace.Options{
		Command: "conformance", Settings: index.Settings{
			Description: minilm.Description(), Background: true, Watch: true, Logger: log,
			Model: func() (models.Embedder, error) { return minilm.Open(nil) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	offered := tools.New(w.Folder, &tools.Options{NoRateLimit: true, Status: index.StatusRequest{Selection: sel}, Scan: w.Scan, Watch: w.Watch, Logger: log, Extend: extend})
	s, err := server.New([]server.Workspace{{Name: "default", Folder: w.Folder, Tools: offered}}, &server.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "http://localhost:" + port
}

// extend declares the capabilities that the suite requires, and returns the function that
// adds the fixtures.
func extend(o *mcp.ServerOptions) func(*mcp.Server) (stop func()) {
	o.Capabilities.AddExtension(mcptask.Extension, nil)
	o.Capabilities.Logging = &mcp.LoggingCapabilities{}
	o.Capabilities.Tools.ListChanged = true
	o.Capabilities.Prompts.ListChanged = true
	return register
}
