package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"cairn/internal/face/token"
)

// TokenStore returns the store in the named file, else the user's.
func TokenStore(file string) (*token.Store, error) {
	file = cmp.Or(file, os.Getenv("CAIRN_TOKENS"))
	if file == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("finding the file of the tokens: %w; name it with --tokens", err)
		}
		file = filepath.Join(dir, "cairn", "tokens.json")
	}
	return token.Open(file, nil), nil
}
