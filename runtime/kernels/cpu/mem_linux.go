package cpu

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapMem gets at least n bytes of zeroed memory outside the Go heap, with huge
// pages only if the machine has them and n fills one.
func mapMem(n int, kind pageKind) ([]byte, error) {
	if n >= hugePage {
		n += hugePage // so that aligned has room; what is not touched costs nothing
	}
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil && n >= hugePage {
		advice := unix.MADV_NOHUGEPAGE
		if kind == hugePages {
			advice = unix.MADV_HUGEPAGE
		}
		_ = unix.Madvise(m, advice) // only speed depends on it, and what is used of memory
	}
	return m, err
}

// aligned is n bytes of what mapMem gave for n, from a huge page's border if
// there are any.
func aligned(m []byte, n int) []byte {
	skip := 0
	if n >= hugePage {
		skip = int(-uintptr(unsafe.Pointer(&m[0])) & (hugePage - 1))
	}
	return m[skip : skip+n]
}

// widenMem makes a huge page of 2 MiB of small ones, what they hold included;
// a system that cannot do it at once (Linux before 6.1) does it at its leisure,
// or never.
func widenMem(m []byte) {
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(m, unix.MADV_COLLAPSE)
}

func unmapMem(m []byte) error { return unix.Munmap(m) }

// memory is what the machine, or the control group that the process lives in,
// has, and of it what is free; zeros when unknown.
func memory() (total, free int64) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			free = kib << 10
		}
	}
	for _, g := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := number(g[0]), number(g[1])
		if limit > 0 && limit < total {
			total = limit
			free = min(free, max(0, limit-used))
		}
	}
	return total, free
}

// number reads a file with one number; 0 if it has none.
func number(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// cores is the number of physical cores of the machine; 0 when unknown.
func cores() int {
	seen := map[string]bool{}
	for i := 0; ; i++ {
		b, err := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(i) + "/topology/thread_siblings_list")
		if err != nil {
			return len(seen)
		}
		seen[strings.TrimSpace(string(b))] = true
	}
}
