package bert

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"cairn/models"

	"golang.org/x/sys/unix"
)

// amxEncoder returns an encoder that uses AMX, or skips the test.
func amxEncoder(t *testing.T) *Encoder {
	if !permitAMX() {
		t.Skip("untested: this machine or its system does not grant AMX")
	}
	_, e := tinyEncoder(t, tinySpecs["8-bit"], models.Description{}, &Options{Kernel: "amx", Threads: 1})
	return e
}

// embedHash returns a hash of the vectors of all texts.
func embedHash(t *testing.T, e *Encoder, texts []string) string {
	vectors, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	for _, v := range vectors {
		for _, x := range v {
			hash.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// TestAMXInterrupted embeds in many goroutines while signals interrupt them, the collector
// preempts them, and processes are started that use AMX themselves.
func TestAMXInterrupted(t *testing.T) {
	e := amxEncoder(t)
	texts := randomTexts(24)
	want := embedHash(t, e, texts)

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	var done atomic.Bool
	var disturbers, workers sync.WaitGroup
	disturbers.Go(func() {
		for !done.Load() {
			syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			runtime.Gosched()
		}
	})
	disturbers.Go(func() {
		for !done.Load() {
			runtime.GC()
		}
	})
	for range 8 {
		workers.Go(func() {
			for range 60 {
				if got := embedHash(t, e, texts); got != want {
					t.Errorf("interrupted, the vectors differ")
					return
				}
			}
		})
	}
	workers.Go(func() {
		for range 3 {
			if got := child(t, "embed"); got != want {
				t.Errorf("the vectors of a child process have the hash %s, want %s", got, want)
			}
		}
	})
	workers.Wait()
	done.Store(true)
	disturbers.Wait()
}

// TestAMXRefused starts a process whose requests for AMX fail, as on a system that does not
// support it.
func TestAMXRefused(t *testing.T) {
	got := child(t, "refuse")
	if got == "" {
		t.Skip("untested: the system call filter is not to be had")
	}
	if strings.Contains(got, "amx") || !strings.HasSuffix(got, "portable") {
		t.Errorf("without permission, the kernels are %s", got)
	}
}

// child runs TestAMXChild in another process and returns its answer.
func child(t *testing.T, task string) string {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-test.run=^TestAMXChild$", "-test.v")
	c.Env = append(os.Environ(), "BERT_TEST_CHILD="+task)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	_, answer, _ := strings.Cut(string(out), "answer: ")
	answer, _, _ = strings.Cut(answer, "\n")
	return answer
}

// TestAMXChild does a task for child.
func TestAMXChild(t *testing.T) {
	switch os.Getenv("BERT_TEST_CHILD") {
	case "embed":
		fmt.Println("answer:", embedHash(t, amxEncoder(t), randomTexts(24)))
	case "refuse":
		refuseAMX(t)
		names := Kernels()
		if _, err := chooseKernel("amx"); err == nil || slices.Contains(names, "amx") {
			t.Error("the kernel amx can be chosen without permission")
		}
		fmt.Println("answer:", strings.Join(names, " "))
	default:
		t.Skip("it runs in a process of another test")
	}
}

// refuseAMX makes arch_prctl fail in this process.
func refuseAMX(t *testing.T) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_ARCH_PRCTL},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Skipf("untested: %v", err)
	}
	if _, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); err != 0 {
		t.Skipf("untested: %v", err)
	}
}
