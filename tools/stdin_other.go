//go:build !unix

package tools

import "io"

// pollable returns in unchanged.
func pollable(in io.Reader) (io.Reader, func()) { return in, func() {} }
