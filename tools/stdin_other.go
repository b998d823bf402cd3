//go:build !unix

package tools

import "io"

// pollable returns in: only Unix offers a choice of how to wait for a pipe.
func pollable(in io.Reader) (io.Reader, func()) { return in, func() {} }
