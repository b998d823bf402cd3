package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cairn/internal/store/qdrant/qdranttest"
)

// qdrantCommand is "qdrant start" and "qdrant stop": a store for the script, whose
// address is $QDRANT.
func qdrantCommand(t *testing.T) func(*testscript.TestScript, bool, []string) {
	servers := map[*testscript.TestScript]*qdranttest.Server{}
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: qdrant start|stop")
		}
		s := servers[ts]
		switch {
		case args[0] == "stop" && s != nil:
			s.Stop()
		case args[0] == "start" && s != nil:
			ts.Check(s.Start())
		case args[0] == "start":
			s = qdranttest.New(t, nil)
			servers[ts] = s
			ts.Setenv("QDRANT", "qdrant://"+s.Addr()+"/docs")
		default:
			ts.Fatalf("qdrant %s: none runs", args[0])
		}
	}
}
