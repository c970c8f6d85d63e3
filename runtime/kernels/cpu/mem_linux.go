package cpu

import (
	"io/fs"
	"os"
	slashed "path"
	"slices"
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

// memory is what the machine, or the control groups that the process lives in,
// has, and of it what is free; zeros when unknown.
func memory() (total, free int64) { return memoryIn(os.DirFS("/")) }

// memoryIn is memory by the files under root.
func memoryIn(root fs.FS) (total, free int64) {
	b, err := fs.ReadFile(root, "proc/meminfo")
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
	for _, dir := range groups(root) {
		limit, used := number(root, dir+"/memory.max"), number(root, dir+"/memory.current")
		if limit == 0 { // version 1
			limit, used = number(root, dir+"/memory.limit_in_bytes"), number(root, dir+"/memory.usage_in_bytes")
		}
		if limit > 0 && limit < 1<<62 { // version 1 has a number for none
			total = min(total, limit)
			free = min(free, max(0, limit-max(0, used-cached(root, dir+"/memory.stat"))))
		}
	}
	return total, free
}

// groups are the folders of the control groups that may limit memory: the
// process's and those around it. In a container its own is the root.
func groups(root fs.FS) (dirs []string) {
	b, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 || f[1] != "" && !slices.Contains(strings.Split(f[1], ","), "memory") {
			continue
		}
		top := "sys/fs/cgroup"
		if f[1] != "" {
			top += "/memory"
		}
		for at := slashed.Clean("/" + f[2]); ; at = slashed.Dir(at) {
			dirs = append(dirs, slashed.Join(top, at))
			if at == "/" {
				break
			}
		}
	}
	return dirs
}

// cached is what a control group's memory has of files, which the system drops
// when memory is short: after a download that may be most of it.
func cached(root fs.FS, stat string) int64 {
	b, _ := fs.ReadFile(root, stat)
	sums := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 {
			sums[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	if n, ok := sums["total_inactive_file"]; ok { // version 1: of the groups in it too
		return n + sums["total_active_file"]
	}
	return sums["inactive_file"] + sums["active_file"]
}

// number reads a file with one number; 0 if it has none.
func number(root fs.FS, file string) int64 {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}
