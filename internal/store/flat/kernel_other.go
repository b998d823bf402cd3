//go:build !amd64

package flat

func available() []kernel { return []kernel{portable} }
