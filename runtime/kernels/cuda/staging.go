package cuda

import (
	"context"

	driver "infer/runtime/internal/cuda"
	"infer/runtime/kernels"
)

// halfBytes is the size of each half of a stream's staging memory.
const halfBytes = 2 << 20

// staging is pinned host memory between ordinary memory and the device. One
// half is filled while copies use the other; the space of a half is used again
// only when the device is done with it.
type staging struct {
	halves [2]half
	now    int // the half being filled
}

type half struct {
	buf  *hostBuffer
	used int
	mark driver.Event // passed when all copies of the half are done
	outs []copyOut    // when they are
}

// copyOut is bytes that a copy from the device brings, and where they belong.
type copyOut struct {
	dst, src []byte
}

// reserve gives n ≤ halfBytes of staging memory, aligned; nil after an error.
func (s *stream) reserve(n int) []byte {
	h := &s.stage.halves[s.stage.now]
	from := (h.used + 63) &^ 63
	if from+n > len(h.buf.mem) {
		s.push(opMark, "staging").half = h
		s.stage.now ^= 1
		h = &s.stage.halves[s.stage.now]
		if h.used > 0 {
			if err := s.await(context.Background(), h); err != nil {
				return nil
			}
			h.release()
		}
		from = 0
	}
	h.used = from + n
	return h.buf.mem[from : from+n : from+n]
}

// piece is how much of n bytes to stage at once: what is left of the half if
// that is worth it, else a whole half.
func (s *stream) piece(n int) int {
	left := halfBytes - (s.stage.halves[s.stage.now].used+63)&^63
	if left < 64<<10 {
		left = halfBytes
	}
	return min(n, left)
}

// release delivers what copies brought and empties the half.
func (h *half) release() {
	for _, o := range h.outs {
		copy(o.dst, o.src)
	}
	clear(h.outs)
	h.outs, h.used = h.outs[:0], 0
}

// upload queues a copy of src to the device.
func (s *stream) upload(name string, dst driver.Ptr, src []byte) {
	if len(src) == 0 {
		return
	}
	if s.dev.sys.pinned.has(src) {
		s.copyIn(name, dst, src)
		return
	}
	for len(src) > 0 {
		m := s.reserve(s.piece(len(src)))
		if m == nil {
			return
		}
		n := copy(m, src)
		s.copyIn(name, dst, m)
		src, dst = src[n:], dst+driver.Ptr(n)
	}
}

func (s *stream) copyIn(name string, dst driver.Ptr, src []byte) {
	c := s.push(opUpload, name)
	c.dst, c.host, c.n = dst, src, int64(len(src))
}

// download queues a copy to dst, which is valid after Sync.
func (s *stream) download(name string, dst []byte, src driver.Ptr) {
	if len(dst) == 0 {
		return
	}
	if s.dev.sys.pinned.has(dst) {
		s.copyOut(name, dst, src)
		return
	}
	for len(dst) > 0 {
		m := s.reserve(s.piece(len(dst)))
		if m == nil {
			return
		}
		s.copyOut(name, m, src)
		h := &s.stage.halves[s.stage.now]
		h.outs = append(h.outs, copyOut{dst[:len(m)], m})
		dst, src = dst[len(m):], src+driver.Ptr(len(m))
	}
}

func (s *stream) copyOut(name string, dst []byte, src driver.Ptr) {
	c := s.push(opDownload, name)
	c.src, c.host, c.n = src, dst, int64(len(dst))
}

// maxResults are the digests and comparisons between two waits.
const maxResults = 256

// results are pairs of words that kernels add to, and whose they are. They are
// zero when they are given out.
type results struct {
	buf     *buffer // maxResults × 16 bytes; nil until one is wanted
	host    []byte
	digests []*kernels.Digest
	compare []*kernels.Comparison // of the same length: one of the two is nil
}

// result gives the place of a new result; 0 after an error.
func (s *stream) result(d *kernels.Digest, c *kernels.Comparison) driver.Ptr {
	r := &s.results
	if r.buf == nil {
		buf, err := s.dev.alloc(maxResults * 16)
		if err != nil {
			s.fail(err)
			return 0
		}
		r.buf, r.host = buf, make([]byte, maxResults*16)
		s.zero(buf.ptr, maxResults*16)
	}
	if len(r.digests) == maxResults {
		if err := s.Sync(context.Background()); err != nil {
			return 0
		}
	}
	p := r.buf.ptr + driver.Ptr(16*len(r.digests))
	r.digests, r.compare = append(r.digests, d), append(r.compare, c)
	return p
}

func (s *stream) zero(p driver.Ptr, n int64) {
	c := s.push(opSet, "clear results")
	c.dst, c.n = p, n
}

// fetch queues the copy of all results to the host.
func (r *results) fetch(s *stream) {
	if n := len(r.digests); n > 0 {
		s.download("Digest", r.host[:16*n], r.buf.ptr)
		s.zero(r.buf.ptr, int64(16*n))
	}
}

// deliver gives the results to those who asked, after a wait.
func (r *results) deliver() {
	for i, d := range r.digests {
		a, b := word(r.host, 2*i), word(r.host, 2*i+1)
		if d != nil {
			*d = kernels.Digest{a, b}
		} else {
			*r.compare[i] = comparison(a, b)
		}
	}
	clear(r.digests)
	clear(r.compare)
	r.digests, r.compare = r.digests[:0], r.compare[:0]
}
