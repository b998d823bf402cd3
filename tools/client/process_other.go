//go:build !unix

package client

import "os/exec"

// Without process groups only the server itself can be killed.
func ownGroup(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }
func kill(cmd *exec.Cmd)            { _ = cmd.Process.Kill() }
