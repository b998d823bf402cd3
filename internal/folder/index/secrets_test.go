package index

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/retriever"
)

// TestSecretsAreMasked: with security.mask, a secret in a document is in no file of the
// index, no answer and no reading; line numbers stay those of the file.
func TestSecretsAreMasked(t *testing.T) {
	key := "AKIA" + "ABCDEFGHIJKLMNOP"
	block := "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJCrze8S\n-----END RSA PRIVATE KEY-----"
	text := "# Deploy\n\nThe deploy key is " + key + ".\n\n" + block + "\n\n## Rollback\n\nRestore the release of acme-4711.\n"
	for _, masked := range []bool{true, false} {
		x := open(t, func(o *Options) {
			o.Config.Security.Mask = masked
			o.Config.Security.SecretPatterns = []string{"acme-[0-9]+"}
			if err := os.WriteFile(filepath.Join(o.Selection.Root, "deploy.md"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		if _, err := x.Index(t.Context(), IndexRequest{}, nil); err != nil {
			t.Fatal(err)
		}
		shows := func(what, got string) {
			t.Helper()
			for _, secret := range []string{key, "MIIEowIBAAKCAQEA", "acme-4711"} {
				if strings.Contains(got, secret) == masked {
					t.Errorf("masked %v: %s has the secret %s: %v", masked, what, secret, !masked)
				}
			}
		}
		whole, err := x.Read(t.Context(), retriever.ReadRequest{Path: "deploy.md"})
		if err != nil {
			t.Fatal(err)
		}
		shows("the document", whole.Content)
		if want := map[bool]int{true: 3}[masked]; whole.Masked != want {
			t.Errorf("masked %v: the reading reports %d secrets, want %d", masked, whole.Masked, want)
		}
		section, err := x.Read(t.Context(), retriever.ReadRequest{Path: "deploy.md", Anchor: "rollback"})
		if err != nil {
			t.Fatal(err)
		}
		if section.LineRange == nil || section.LineRange.Start != 10 {
			t.Errorf("masked %v: the section is at %v, want line 10", masked, section.LineRange)
		}
		answer, err := x.Search(t.Context(), retriever.Query{Text: "deploy key", Limit: 5, MaxTokens: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range answer.Results {
			if masked && (strings.Contains(r.Snippet+r.Content, key) || strings.Contains(r.Content, "MIIE")) {
				t.Errorf("an answer shows a secret: %q %q", r.Snippet, r.Content)
			}
		}
		if x.Close(); masked {
			indexed(t, x.options.Dir, key, "MIIEowIBAAKCAQEA", "acme-4711", "4711")
		}
	}
}

// TestOtherRulesRebuildTheIndex: an index that was made before a setting for secrets
// changed, or by a cairn that cuts files by other rules, is made again without a command.
func TestOtherRulesRebuildTheIndex(t *testing.T) {
	key := "AKIA" + "ABCDEFGHIJKLMNOP"
	x := open(t, func(o *Options) {
		o.Config.Security.Mask = false
		if err := os.WriteFile(filepath.Join(o.Selection.Root, "deploy.md"), []byte("# Deploy\n\nThe deploy key is "+key+".\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := x.Index(t.Context(), IndexRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	changed := x.options
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	changed.Config.Security.Mask = true
	reading := changed
	reading.Write, reading.Holder = false, nil
	x = New(reading)
	state, err := x.Status(t.Context(), StatusRequest{})
	if err != nil || state.Problem == "" || strings.Contains(state.Problem, "damaged") {
		t.Errorf("Status before the rebuild: %+v, %v, want a problem that is no damage", state, err)
	}
	found, err := x.Verify(t.Context(), VerifyRequest{})
	if err != nil || found.Damaged() || len(found.Files) != 1 || !found.Files[0].Outdated {
		t.Errorf("Verify before the rebuild: %+v, %v, want an outdated part", found, err)
	}
	x.Close()
	x = New(changed)
	defer x.Close()
	if _, err := x.Index(t.Context(), IndexRequest{}, nil); err != nil {
		t.Fatalf("indexing after the setting changed: %v", err)
	}
	answer, err := x.Search(t.Context(), retriever.Query{Text: "deploy key"})
	if err != nil || len(answer.Results) == 0 || strings.Contains(answer.Results[0].Snippet, key) {
		t.Errorf("the answer after the setting changed is %+v, %v; want one without the key", answer, err)
	}
	x.Close()
	indexed(t, changed.Dir, key)
}

// indexed reports files below dir that contain one of the secrets.
func indexed(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(strings.ToLower(secret))) {
				t.Errorf("%s holds %s", path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
