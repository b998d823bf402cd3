// Package skills embeds the Agent Skills of cairn: folders with a SKILL.md that tells a
// model how to use cairn. Package tools serves them.
package skills

import "embed"

// Files has a folder for each skill.
//
//go:embed */SKILL.md
var Files embed.FS
