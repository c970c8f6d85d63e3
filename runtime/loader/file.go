package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"infer/runtime/tensor"
)

// Tensor is one tensor of a file: where it lies, not its values.
type Tensor struct {
	Name   string
	DType  tensor.DType
	Shape  []int // outermost first; empty for a scalar
	Offset int64 // of its first byte, from the start of the file
	Bytes  int64
	file   *File
}

// File is the path of the file the tensor lies in.
func (t *Tensor) File() string { return t.file.Path }

// Large reads are split and done in parallel: one pread stream seldom fills a
// fast disk, and copying from the page cache is bound by one core.
const (
	readPiece   = 4 << 20 // bytes
	readStreams = 4
)

// ReadAt reads len(p) bytes of the tensor's data from byte off of it; a read
// beyond the tensor's end is an error, as is a file that has become shorter.
// Safe for concurrent use.
func (t *Tensor) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || int64(len(p)) > t.Bytes-off {
		return 0, fmt.Errorf("%s: tensor %s: read of %d bytes at %d is outside its %d bytes", t.file.Path, quote(t.Name), len(p), off, t.Bytes)
	}
	read := func(p []byte, off int64) error {
		n, err := t.file.src.ReadAt(p, t.Offset+off)
		if n == len(p) {
			return nil
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = errors.New("the file has become shorter since it was opened")
		}
		return fmt.Errorf("%s: tensor %s: read %d of %d bytes at %d: %w", t.file.Path, quote(t.Name), n, len(p), t.Offset+off, err)
	}
	if len(p) < 2*readPiece {
		if err := read(p, off); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	var g errgroup.Group
	g.SetLimit(readStreams)
	for lo := 0; lo < len(p); lo += readPiece {
		hi := min(lo+readPiece, len(p))
		g.Go(func() error { return read(p[lo:hi], off+int64(lo)) })
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// File is an open safetensors file.
type File struct {
	Path     string // for messages and reports
	Size     int64  // bytes
	Tensors  []*Tensor
	Metadata map[string]string // the header's __metadata__; nil when absent
	src      source
}

// source is what a file is read from.
type source interface {
	io.ReaderAt
	io.Closer
}

// Option changes how files are opened.
type Option func(*options)

type options struct{ mmap bool }

// Mmap maps files into memory instead of reading them with pread. Pages are
// then shared with other processes. A file that is truncated meanwhile still
// gives an error, not a crash.
func Mmap() Option { return func(o *options) { o.mmap = true } }

func makeOptions(opts []Option) options {
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

// OpenFile opens one safetensors file and checks its header.
func OpenFile(path string, opts ...Option) (*File, error) {
	f, err := openIn(os.DirFS(filepath.Dir(path)), filepath.Base(path), path, makeOptions(opts))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// NewFile reads a safetensors file of size bytes from r, for example one in
// memory. path is only its name in messages.
func NewFile(path string, r io.ReaderAt, size int64) (*File, error) {
	f, err := newFile(path, nopCloser{r}, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

type nopCloser struct{ io.ReaderAt }

func (nopCloser) Close() error { return nil }

func newFile(path string, src source, size int64) (*File, error) {
	h, err := parseHeader(src, size)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Size: size, Tensors: h.tensors, Metadata: h.metadata, src: src}
	for _, t := range f.Tensors {
		t.file = f
	}
	return f, nil
}

// openIn opens name in fsys. Errors do not name the file.
func openIn(fsys fs.FS, name, path string, o options) (*File, error) {
	h, size, err := openRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	src, ok := h.(source)
	if !ok {
		_ = h.Close()
		return nil, fmt.Errorf("%T cannot be read at random places", h)
	}
	if osFile, ok := h.(*os.File); ok && o.mmap {
		if src, err = newMapping(osFile, size); err != nil {
			_ = h.Close()
			return nil, err
		}
	}
	f, err := newFile(path, src, size)
	if err != nil {
		_ = src.Close()
		return nil, err
	}
	return f, nil
}

// openRegular opens a regular file (or a link to one): a folder, pipe or
// device is refused before it is opened, as opening a pipe would wait.
func openRegular(fsys fs.FS, name string) (fs.File, int64, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("is not a regular file (%v)", info.Mode().Type())
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, bare(err)
	}
	if info, err = f.Stat(); err != nil {
		_ = f.Close()
		return nil, 0, bare(err)
	}
	return f, info.Size(), nil
}

// bare drops the path of an fs error: callers put the full one in front.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}

// Close gives the file back. Its tensors cannot be read any more.
func (f *File) Close() error { return f.src.Close() }
