package engine

// philox is Philox4x32-10, a counter-based random generator: Salmon et al.,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. It has no state, so
// that a draw depends on seed and position only, whatever was drawn before.
func philox(key uint64, ctr [4]uint32) [4]uint32 {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57
		w0, w1 = 0x9E3779B9, 0xBB67AE85
	)
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		p0, p1 := uint64(m0)*uint64(ctr[0]), uint64(m1)*uint64(ctr[2])
		ctr = [4]uint32{
			uint32(p1>>32) ^ ctr[1] ^ k0, uint32(p1),
			uint32(p0>>32) ^ ctr[3] ^ k1, uint32(p0),
		}
		k0 += w0
		k1 += w1
	}
	return ctr
}

// uniform is the draw in [0, 1) of a seed at a position of a sequence.
func uniform(seed uint64, position int) float64 {
	p := uint64(position)
	r := philox(seed, [4]uint32{uint32(p), uint32(p >> 32)})
	return float64((uint64(r[0])<<32|uint64(r[1]))>>11) / (1 << 53)
}
