//go:build !unix

package watch

func exhausted(error) bool { return false }

func notFolder(error) bool { return false }
