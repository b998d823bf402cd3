//go:build !linux && !darwin && !freebsd

package watch

// maxFolders is how many folders are watched at most. Windows needs a handle
// and a buffer for each.
const maxFolders = 4096

// remote is not known here: shares of Windows machines tell of their changes.
func remote(string) string { return "" }
