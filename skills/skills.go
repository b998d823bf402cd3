// Package skills holds the Agent Skills that come with cairn: folders with a SKILL.md
// that tell a model how to use it. It serves nothing.
package skills

import "embed"

// Files has a folder for each skill.
//
//go:embed */SKILL.md
var Files embed.FS
