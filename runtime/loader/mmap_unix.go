//go:build unix

package loader

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// mapping is a file in memory.
type mapping struct {
	data []byte
	file *os.File
}

func newMapping(f *os.File, size int64) (source, error) {
	if size == 0 || int64(int(size)) != size {
		return f, nil // nothing to map, or more than the address space holds
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes into memory: %w", size, err)
	}
	return &mapping{data, f}, nil
}

// ReadAt copies from the mapping. Pages that the file has lost meanwhile are
// an error here instead of a fatal signal.
func (m *mapping) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 || off > int64(len(m.data)) {
		return 0, io.EOF
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			n, err = 0, errors.New("the mapped file has become shorter since it was opened, or cannot be read")
		}
	}()
	if n = copy(p, m.data[off:]); n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *mapping) Close() error {
	err := unix.Munmap(m.data)
	return errors.Join(err, m.file.Close())
}
