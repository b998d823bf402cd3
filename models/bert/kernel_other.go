//go:build !amd64 && !arm64

package bert

func available() []*kernel { return []*kernel{portable()} }
