package kernels

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// The definition written out again, word by word, in another shape.
func digestSlow(b []byte) (d Digest) {
	words := []uint64{uint64(len(b))}
	for i := 0; i < len(b); i += 8 {
		var w uint64
		for j := i; j < min(i+8, len(b)); j++ {
			w |= uint64(b[j]) << (8 * (j - i))
		}
		words = append(words, w)
	}
	for p := len(words) - 1; p >= 0; p-- {
		d[0] += DigestMix0(words[p] + uint64(p)*DigestStep0)
		d[1] += DigestMix1(words[p] + uint64(p)*DigestStep1)
	}
	return d
}

func TestDigest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		want := digestSlow(b)
		if got := DigestOf(b); got != want {
			t.Fatalf("%d bytes: %x, want %x", n, got, want)
		}
		// In two parts, the second first.
		cut := n / 2 &^ 7
		d := NewDigest(int64(n))
		d.Add(b[cut:], int64(cut))
		d.Add(b[:cut], 0)
		if d != want {
			t.Fatalf("%d bytes in parts: %x, want %x", n, d, want)
		}
		for bit := range 8 * n {
			b[bit/8] ^= 1 << (bit % 8)
			if g := DigestOf(b); g[0] == want[0] || g[1] == want[1] {
				t.Fatalf("%d bytes: flipping bit %d is not seen in both sums", n, bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// What happens to copies: shifted, swapped, zeroed, shortened. All must show.
func TestDigestSeesMovedWords(t *testing.T) {
	b := make([]byte, 4096)
	for i := range len(b) / 8 {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(i%7))
	}
	want := DigestOf(b)
	seen := map[Digest]string{want: "the original"}
	try := func(what string, c []byte) {
		d := DigestOf(c)
		if prev, dup := seen[d]; dup {
			t.Errorf("%s has the digest of %s", what, prev)
		}
		seen[d] = what
		if d[0] == want[0] || d[1] == want[1] {
			t.Errorf("%s agrees with the original in one sum", what)
		}
	}
	try("all zero", make([]byte, len(b)))
	try("shorter", b[:len(b)-1])
	try("longer by zeros", append(append([]byte{}, b...), 0))
	try("shifted by a byte", append([]byte{0}, b[:len(b)-1]...))
	try("rotated by 56 bytes", append(append([]byte{}, b[56:]...), b[:56]...)[:len(b)-8])
	c := append([]byte{}, b...)
	copy(c[8:16], b[16:24])
	copy(c[16:24], b[8:16])
	try("two words swapped", c)
	c = append([]byte{}, b...)
	clear(c[len(c)/2:])
	try("half missing", c)
	try("nothing", nil)
}

// Pinned, so that every device's kernel and every release agree.
func TestDigestPinned(t *testing.T) {
	b := make([]byte, 27)
	for i := range b {
		b[i] = byte(i*i + 1)
	}
	if got, want := DigestOf(b), (Digest{0x3576ecfacf2b56a6, 0x476159e9ba4ebd6c}); got != want {
		t.Fatalf("%#x, want %#x", got, want)
	}
}
