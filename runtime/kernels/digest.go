package kernels

import "encoding/binary"

// Constants of the digest. A device kernel must use the same.
const (
	// DigestStep is multiplied by a word's position and added to the word,
	// for the first and the second sum.
	DigestStep0 = 0x9e3779b97f4a7c15
	DigestStep1 = 0xd1342543de82ef95
)

// DigestMix0 is the first sum's mix, a bijection (the finaliser "Mix13" of
// Stafford, as in SplitMix64).
func DigestMix0(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// DigestMix1 is the second sum's mix, a bijection (the finaliser of
// MurmurHash3's 64-bit variant).
func DigestMix1(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// NewDigest starts the digest of n bytes: the length stands as the word at
// position 0.
//
// The definition: the bytes are read as little-endian 64-bit words w[1], w[2]
// …, the last one padded with zero bytes, and w[0] is their number. Then, all
// modulo 2^64, over every position p,
//
//	d[0] = Σ mix0(w[p] + p·DigestStep0)    d[1] = Σ mix1(w[p] + p·DigestStep1)
//
// Since both mixes are bijections, any change within one word changes both
// sums. The sums may be made in any order and in any number of parts.
func NewDigest(n int64) Digest {
	return Digest{DigestMix0(uint64(n)), DigestMix1(uint64(n))}
}

// Add adds the words of b, which starts at byte offset off of what is
// digested. off is a multiple of 8, and so is len(b) but for the last part.
func (d *Digest) Add(b []byte, off int64) {
	p := uint64(off/8) + 1
	a0, a1 := p*DigestStep0, p*DigestStep1
	s0, s1 := d[0], d[1]
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		b = b[8:]
		s0 += DigestMix0(w + a0)
		s1 += DigestMix1(w + a1)
		a0 += DigestStep0
		a1 += DigestStep1
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		w := binary.LittleEndian.Uint64(last[:])
		s0 += DigestMix0(w + a0)
		s1 += DigestMix1(w + a1)
	}
	d[0], d[1] = s0, s1
}

// DigestOf is the digest of b: what Ops.Digest gives for a tensor with these
// bytes.
func DigestOf(b []byte) Digest {
	d := NewDigest(int64(len(b)))
	d.Add(b, 0)
	return d
}
