package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSkills follows SEP-2640: the server declares the extension, lists its skills with
// digests of their files, and serves the files as resources.
func TestSkills(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), nil)
	s.send(request(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	if line := s.receive(); !strings.Contains(line, `"extensions":{"io.modelcontextprotocol/skills":{}}`) {
		t.Errorf("the capabilities do not name the extension: %s", line)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

	s.send(request(1, "skills/list", `{}`))
	var list struct{ Result skillsResult }
	line := s.receive()
	if err := json.Unmarshal([]byte(line), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Result.Skills) != 1 || list.Result.ResultType != "complete" || list.Result.TTLMs == 0 {
		t.Fatalf("skills/list answers %s", line)
	}
	entry := list.Result.Skills[0]
	if entry.URI != "skill://cairn/SKILL.md" || entry.Frontmatter["name"] != "cairn" || !strings.Contains(entry.Frontmatter["description"], "grep") || len(entry.Resources) != 1 {
		t.Errorf("the entry is %+v", entry)
	}

	s.send(request(2, "skills/get", `{"uri":"skill://cairn/SKILL.md"}`))
	if line := s.receive(); !strings.Contains(line, `"skill":{"uri":"skill://cairn/SKILL.md","frontmatter":{`) || !strings.Contains(line, entry.Resources[0].Digest) {
		t.Errorf("skills/get answers %s", line)
	}
	for i, c := range []struct{ method, params string }{
		{"skills/get", `{"uri":"skill://nothing/SKILL.md"}`}, {"skills/get", `{}`}, {"skills/list", `{"cursor":"x"}`},
	} {
		s.send(request(3+i, c.method, c.params))
		if line := s.receive(); !strings.Contains(line, `-32602`) {
			t.Errorf("%s %s answers %s", c.method, c.params, line)
		}
	}

	s.send(request(8, "resources/list", `{}`))
	if line := s.receive(); !strings.Contains(line, `"uri":"skill://cairn/SKILL.md"`) || !strings.Contains(line, `cairn://docs/auth.md`) {
		t.Errorf("resources/list answers %s", line)
	}
	s.send(request(9, "resources/read", `{"uri":"skill://cairn/SKILL.md"}`))
	var read struct {
		Result struct {
			Contents []struct{ Text, MimeType string }
		}
	}
	if err := json.Unmarshal([]byte(s.receive()), &read); err != nil || len(read.Result.Contents) != 1 {
		t.Fatalf("resources/read: %+v, %v", read, err)
	}
	text := read.Result.Contents[0].Text
	if sum := sha256.Sum256([]byte(text)); entry.Resources[0].Digest != "sha256:"+hex.EncodeToString(sum[:]) || entry.Resources[0].Size != len(text) {
		t.Errorf("the digest %s and size %d are not those of what is read", entry.Resources[0].Digest, entry.Resources[0].Size)
	}
	for _, tool := range []string{"read_context", "read_doc", "exhaustive", "more_tools"} {
		if !strings.Contains(text, tool) {
			t.Errorf("the skill does not name %s", tool)
		}
	}
	s.close()
}

func TestLoadSkillsRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no front matter": "# Skill\n", "no end": "---\nname: a\n", "another name": "---\nname: b\ndescription: x y\n---\n",
		"no description": "---\nname: a\n---\n", "a list": "---\nname: a\ndescription: [x]\n---\n",
	} {
		if all, _, err := loadSkills(fstest.MapFS{"a/SKILL.md": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
