package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/text/markdown"
	"cairn/skills"
)

// Skills are served according to the extension SEP-2640: each file of a skill is a
// resource, skills/list returns an entry for each skill, and skills/get returns the entry of
// one URI.
const (
	skillsExtension = "io.modelcontextprotocol/skills"
	skillScheme     = "skill://"
	skillFile       = "SKILL.md"
)

// skill is the entry of one skill.
type skill struct {
	URI string `json:"uri"`
	// Frontmatter is the front matter of SKILL.md.
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillResource   `json:"resources"`
}

// skillResource is one file of a skill.
type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // "sha256:" and hex
	Size   int    `json:"size"`
}

// skillsParams are the parameters of both methods.
type skillsParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"` // of skills/list
	URI    string `json:"uri,omitempty"`    // of skills/get
}

type skillsResult struct {
	mcp.ResultBase
	mcp.Cacheable
	ResultType string  `json:"resultType"`
	Skills     []skill `json:"skills,omitempty"`
	Skill      *skill  `json:"skill,omitempty"`
}

// skillsAge is the time for which clients may cache an entry: skills change only with the
// binary.
var skillsAge = mcp.Cacheable{TTLMs: int(time.Hour / time.Millisecond), CacheScope: "public"}

// addSkills registers the skills in the binary.
func addSkills(server *mcp.Server) {
	all, files, err := loadSkills(skills.Files)
	if err != nil {
		panic(err) // unreachable: a test loads the skills
	}
	for i := range all {
		for _, r := range all[i].Resources {
			text := files[r.URI]
			server.AddResource(&mcp.Resource{
				URI: r.URI, Name: all[i].Frontmatter["name"], Title: "Skill " + all[i].Frontmatter["name"], Description: all[i].Frontmatter["description"], MIMEType: markdownType, Size: int64(r.Size),
			}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.URI, MIMEType: markdownType, Text: text}}}, nil
			})
		}
	}
	listErr := mcp.AddReceivingCustomMethod(server, "skills/list", func(_ context.Context, _ *mcp.ServerSession, p *skillsParams) (*skillsResult, error) {
		if p != nil && p.Cursor != "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: cursor: the list has one page"}
		}
		return &skillsResult{Cacheable: skillsAge, ResultType: "complete", Skills: all}, nil
	})
	getErr := mcp.AddReceivingCustomMethod(server, "skills/get", func(_ context.Context, _ *mcp.ServerSession, p *skillsParams) (*skillsResult, error) {
		for i := range all {
			if p != nil && p.URI == all[i].URI {
				return &skillsResult{Cacheable: skillsAge, ResultType: "complete", Skill: &all[i]}, nil
			}
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: uri: no skill has it; skills/list names them"}
	})
	if listErr != nil || getErr != nil {
		panic(fmt.Sprint(listErr, getErr)) // unreachable: the protocol itself has no such methods
	}
}

// loadSkills returns the entries of the skills in files, and the text of each resource.
func loadSkills(files fs.FS) (all []skill, texts map[string]string, err error) {
	texts = map[string]string{}
	found, err := fs.Glob(files, "*/"+skillFile)
	if err != nil {
		return nil, nil, err
	}
	for _, main := range found {
		dir := path.Dir(main)
		s := skill{URI: skillScheme + main, Frontmatter: map[string]string{}}
		err := fs.WalkDir(files, dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, name)
			sum := sha256.Sum256(text)
			s.Resources = append(s.Resources, skillResource{skillScheme + name, "sha256:" + hex.EncodeToString(sum[:]), len(text)})
			texts[skillScheme+name] = string(text)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		front := markdown.ReadFrontMatter([]byte(texts[s.URI]))
		if !front.Found() {
			return nil, nil, fmt.Errorf("skill %s: it has no front matter: %v", dir, front.Err)
		}
		for key := range front.Fields {
			s.Frontmatter[key] = front.String(key)
		}
		if s.Frontmatter["name"] != dir || s.Frontmatter["description"] == "" {
			return nil, nil, fmt.Errorf("skill %s: name %q and description %q, want the name of its folder and a sentence", dir, s.Frontmatter["name"], s.Frontmatter["description"])
		}
		all = append(all, s)
	}
	return all, texts, nil
}
