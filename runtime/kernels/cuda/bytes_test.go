package cuda

import (
	"encoding/binary"
	"fmt"
	"testing"

	"infer/runtime/kernels"
)

// unaligned gives memory for n bytes that start skip bytes into a buffer.
func (d *gpu) unaligned(name string, b []byte, skip int) (addr uint64) {
	return d.fill(name, append(make([]byte, skip), b...)) + uint64(skip)
}

func (d *gpu) randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.rng.Uint32())
	}
	return b
}

func TestDigest(t *testing.T) {
	for i, n := range []int{0, 1, 7, 8, 9, 64, 1000, 20_011} {
		d := newGPU(t)
		b := d.randomBytes(n)
		out := d.fill("digest", make([]byte, 16))
		d.launch(kernel(t, "bytes", "digest"), [3]int{1 + i%4, 1, 1}, 256, d.unaligned("bytes", b, i%9), uint64(n), out)
		got := d.bytes(out)
		if g, want := (kernels.Digest{binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(got[8:])}), kernels.DigestOf(b); g != want {
			t.Errorf("%d bytes: %x, want %x", n, g, want)
		}
	}
}

func TestFillCompare(t *testing.T) {
	const seed, step = 0x1234567, 0x9e3779b97f4a7c15
	for i, n := range []int{1, 7, 8, 9, 1000, 9001} {
		for _, step := range []uint64{0, step} {
			skip := i % 9
			d := newGPU(t)
			p, all := d.alloc("buffer", n+skip)
			d.launch(kernel(t, "bytes", "fill"), [3]int{2, 1, 1}, 256, p+uint64(skip), uint64(n), uint64(seed), step)
			want := make([]byte, (n+7)/8*8)
			for j := 0; j < len(want); j += 8 {
				binary.LittleEndian.PutUint64(want[j:], kernels.DigestMix0(seed+uint64(j/8)*step))
			}
			sameBytes(t, "pattern", all[skip:], want[:n])
			compare := func(bad, at uint64) {
				t.Helper()
				out := d.fill("result", append(make([]byte, 8), 255, 255, 255, 255, 255, 255, 255, 255))
				d.launch(kernel(t, "bytes", "compare"), [3]int{2, 1, 1}, 256, p+uint64(skip), uint64(n), uint64(seed), step, out)
				got := d.bytes(out)
				if b, f := binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(got[8:]); b != bad || f != at {
					t.Errorf("%d bytes: %d differ from %d on; want %d from %d on", n, b, int64(f), bad, int64(at))
				}
			}
			compare(0, 1<<64-1)
			all[skip+n-1] ^= 1
			compare(1, uint64(n-1))
			if n > 900 {
				all[skip+500] ^= 0x80
				all[skip+501] ^= 0xff
				compare(3, 500)
			}
		}
	}
}

func TestCopyGather(t *testing.T) {
	for i, n := range []int{1, 15, 16, 17, 577, 5000} {
		for _, skip := range []int{0, i} {
			d := newGPU(t)
			b := d.randomBytes(n)
			dst, got := d.alloc("dst", n+skip)
			d.launch(kernel(t, "bytes", "copy"), [3]int{2, 1, 1}, 256, dst+uint64(skip), d.unaligned("src", b, 2*skip), uint64(n))
			sameBytes(t, fmt.Sprintf("copy of %d bytes", n), got[skip:], b)
		}
		d := newGPU(t)
		rows := d.randomBytes(20 * n)
		ids := []int32{0, 3, 4, 19}
		dst, got := d.alloc("dst", len(ids)*n)
		d.launch(kernel(t, "bytes", "gather"), [3]int{len(ids), 1, 1}, 128, dst, d.put("src", rows), d.ints("ids", ids), uint64(n))
		var want []byte
		for _, r := range ids {
			want = append(want, rows[int(r)*n:][:n]...)
		}
		sameBytes(t, "gather", got, want)
	}
}
