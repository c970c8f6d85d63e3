//go:build !unix

package loader

import (
	"errors"
	"os"
)

func newMapping(*os.File, int64) (source, error) {
	return nil, errors.New("mapping files into memory is not supported on this system: leave --mmap off")
}
