//go:build !linux && !darwin && !freebsd

package watch

// maxFolders bounds the number of watched folders. Windows needs a handle and a buffer for
// each.
const maxFolders = 4096

// remote returns "": shares of Windows machines report their changes.
func remote(string) string { return "" }
