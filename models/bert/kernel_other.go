//go:build !amd64

package bert

func available() []*kernel { return []*kernel{portable()} }
