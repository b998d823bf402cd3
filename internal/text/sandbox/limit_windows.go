package sandbox

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
	return time.Duration(ticks(kernel)+ticks(user)) * 100
}

// restrict puts this process into a job object that limits it for its remaining life. The
// job allows no further process.
func restrict(limits Limits) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	const base = 128 << 20 // what the Go runtime and the executable commit
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY | windows.JOB_OBJECT_LIMIT_PROCESS_TIME |
				windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
			PerProcessUserTimeLimit: int64(limits.Time / 100),
			ActiveProcessLimit:      1,
		},
		ProcessMemoryLimit: uintptr(base + limits.Memory),
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return err
	}
	return windows.AssignProcessToJobObject(job, windows.CurrentProcess()) // the process keeps the job open
}
