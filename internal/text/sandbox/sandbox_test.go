package sandbox

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var limits = Limits{Memory: 96 << 20, Time: 300 * time.Millisecond}

var pool = New("test", limits, act)

func TestMain(m *testing.M) {
	pool.Serve()
	os.Exit(m.Run())
}

var kept [][]byte

// hoard and burn are what a hostile request makes a function do.
func hoard() {
	for {
		kept = append(kept, bytes.Repeat([]byte{1}, 1<<16))
	}
}

func burn() {
	for i := 0; ; i++ {
		_ = i
	}
}

// act does what a request names, and answers with the result.
func act(request []byte) []byte {
	report := func(err error) []byte {
		if err == nil {
			return []byte("allowed")
		}
		return []byte(err.Error())
	}
	if fd, ok := bytes.CutPrefix(request, []byte("descriptor ")); ok {
		n, _ := strconv.Atoi(string(fd))
		_, err := os.NewFile(uintptr(n), "inherited").Stat()
		return report(err)
	}
	switch string(request) {
	case "hoard":
		hoard()
	case "one allocation":
		return make([]byte, 1<<30)
	case "most":
		for range limits.Memory * 3 / 4 >> 16 {
			kept = append(kept, bytes.Repeat([]byte{1}, 1<<16))
		}
		return nil
	case "burn":
		burn()
	case "overflow":
		var f func(n int) int
		f = func(n int) int { return f(n+1) + 1 }
		f(0)
	case "panic":
		panic("a bug")
	case "environment":
		return []byte(strings.Join(os.Environ(), " "))
	case "directory":
		dir, err := os.Getwd()
		return append([]byte(dir), report(err)...)
	case "read":
		_, err := os.ReadFile(os.DevNull)
		return report(err)
	case "write":
		return report(os.WriteFile("/tmp/cairn-sandbox", nil, 0o600))
	case "dial":
		_, err := net.Dial("tcp", "127.0.0.1:1")
		return report(err)
	case "run":
		return report(exec.Command("/bin/true").Run())
	}
	return append([]byte("answer to "), request...)
}

func TestCall(t *testing.T) {
	var wait sync.WaitGroup
	for _, request := range []string{"", "a", strings.Repeat("long", 1<<20)} {
		for range 5 {
			wait.Go(func() {
				if response, err := pool.Call([]byte(request)); err != nil || string(response) != "answer to "+request {
					t.Errorf("Call(%.10q) = %.20q, %v", request, response, err)
				}
			})
		}
	}
	wait.Wait()
}

// TestFailureCostsOneCall lets calls exceed each limit. The other calls succeed.
func TestFailureCostsOneCall(t *testing.T) {
	for _, test := range []struct{ request, reason string }{
		{"hoard", limits.errMemory().Error()},
		{"one allocation", limits.errMemory().Error()},
		{"burn", limits.errTime().Error()},
		{"overflow", "crashes the process that reads it: runtime: goroutine stack exceeds 25165824-byte limit"},
		{"panic", "crashes the process that reads it: panic: a bug"},
	} {
		_, err := pool.Call([]byte(test.request))
		if failure, ok := errors.AsType[*Error](err); !ok || failure.Reason != test.reason {
			t.Errorf("%s: %v, want %q", test.request, err, test.reason)
		}
		if response, err := pool.Call([]byte("x")); string(response) != "answer to x" {
			t.Errorf("after %s: %q, %v", test.request, response, err)
		}
	}
}

// TestMostOfTheMemory lets new children use three quarters of their memory, wherever the
// runtime places it.
func TestMostOfTheMemory(t *testing.T) {
	for range 10 {
		fresh := New("test", limits, act)
		if _, err := fresh.Call([]byte("most")); err != nil {
			t.Fatal(err)
		}
		for _, c := range fresh.idle {
			fresh.expire(c)
		}
	}
}

// TestEndOfAnIdleChild kills a child between two calls.
func TestEndOfAnIdleChild(t *testing.T) {
	pool.Call(nil)
	for _, c := range pool.idle {
		c.cmd.Process.Kill()
	}
	if response, err := pool.Call([]byte("x")); string(response) != "answer to x" {
		t.Errorf("%q, %v", response, err)
	}
}

func TestChildHasNothing(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	response, err := pool.Call([]byte("environment"))
	if err != nil || strings.Contains(string(response), "hunter2") || strings.Contains(string(response), "PATH=") {
		t.Errorf("environment %q, %v", response, err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux denies system calls")
	}
	for _, request := range []string{"read", "write", "dial", "run"} {
		if response, err := pool.Call([]byte(request)); err != nil || !strings.Contains(string(response), "operation not permitted") {
			t.Errorf("%s: %q, %v", request, response, err)
		}
	}
}
