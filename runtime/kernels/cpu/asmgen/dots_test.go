package asmgen

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ordinary fills memory with bfloat16 of an ordinary size.
func (c *call) ordinary(at uint64, bytes int) {
	for i := range c.m.mem[at:][:bytes] {
		b := byte(c.rng.Uint32())
		if i%2 == 1 {
			b = b&0x83 | 0x3c
		}
		c.m.mem[at+uint64(i)] = b
	}
}

// The kernels for dot products of bfloat16, for every number of rows.
func TestDots(t *testing.T) {
	programs, data := parse(Dots())
	rng := rand.New(rand.NewPCG(7, 9))
	const groupBytes = 64 * groupPairs
	for rows := 1; rows <= dots.MaxR; rows++ {
		for log2p := 0; log2p <= dots.Log2P(rows); log2p++ {
			for groups := 1; groups <= 2; groups++ {
				c := newCall(data, rng)
				c.rows, c.panels, c.k, c.add = rows, 1<<log2p, groups, groups%2 == 0
				c.ldx, c.ldw, c.ldd = groups*actDots+64, groups*groupBytes+192, 64*c.panels+16
				c.x, c.w = c.m.region(c.ldx*(rows-1)+groups*actDots), c.m.region(c.ldw*(c.panels-1)+groups*groupBytes)
				x, w := c.m.mem[c.x:], c.m.mem[c.w:]
				c.ordinary(c.x, c.ldx*(rows-1)+groups*actDots)
				c.ordinary(c.w, c.ldw*(c.panels-1)+groups*groupBytes)
				c.run(programs[dotsName(rows, log2p)])
				c.fetches(t, dotsName(rows, log2p))
				for r := range rows {
					for i := range 16 * c.panels {
						p, n := i/16, i%16
						var acc float32
						if c.add {
							acc = c.was(r, p, n)
						}
						for k := range groups * groupPairs {
							v, weight := u32(x[r*c.ldx:], k), u32(w[p*c.ldw+64*k:], n)
							acc = fma(math.Float32frombits(v&^0xffff), math.Float32frombits(weight&^0xffff), acc)
							acc = fma(math.Float32frombits(v<<16), math.Float32frombits(weight<<16), acc)
						}
						c.check(t, dotsName(rows, log2p), r, p, n, acc)
					}
				}
			}
		}
	}
}

// Those for pages, whose pairs lie apart.
func TestPairs(t *testing.T) {
	programs, data := parse(Dots())
	rng := rand.New(rand.NewPCG(7, 12))
	for rows := 1; rows <= dots.MaxR; rows++ {
		for log2p := 0; log2p <= pairsLog2P(rows); log2p++ {
			for _, pairs := range []int{1, 2, 5} {
				c := newCall(data, rng)
				c.rows, c.panels, c.k, c.add, c.step = rows, 1<<log2p, pairs, pairs%2 == 0, 64*(1<<log2p)+128
				c.ldx, c.ldw, c.ldd = pairs*actPair+8, 64, 64*c.panels+16
				xBytes, wBytes := c.ldx*(rows-1)+pairs*actPair, c.step*(pairs-1)+64*c.panels
				c.x, c.w = c.m.region(xBytes), c.m.region(wBytes)
				x, w := c.m.mem[c.x:], c.m.mem[c.w:]
				c.ordinary(c.x, xBytes)
				c.ordinary(c.w, wBytes)
				c.run(programs[pairsName(rows, log2p)])
				c.fetches(t, pairsName(rows, log2p))
				for r := range rows {
					for i := range 16 * c.panels {
						p, n := i/16, i%16
						var acc float32
						if c.add {
							acc = c.was(r, p, n)
						}
						for k := range pairs {
							v, weight := u32(x[r*c.ldx:], k), u32(w[p*c.ldw+c.step*k:], n)
							acc = fma(math.Float32frombits(v&^0xffff), math.Float32frombits(weight&^0xffff), acc)
							acc = fma(math.Float32frombits(v<<16), math.Float32frombits(weight<<16), acc)
						}
						c.check(t, pairsName(rows, log2p), r, p, n, acc)
					}
				}
			}
		}
	}
}

// Activations are rounded in their order.
func TestDotsRound(t *testing.T) {
	programs, data := parse(Dots())
	c := newCall(data, rand.New(rand.NewPCG(2, 2)))
	const groups = 3
	x, dst := c.m.region(groups*32*4), c.m.region(groups*actDots)
	for i := range groups * 32 {
		putF32(c.m.mem[x:], i, float32(c.rng.NormFloat64()))
	}
	putU32(c.m.mem[x:], 5, 0x7fffffff) // a NaN
	putU32(c.m.mem[x:], 6, 0x00000001)
	putU32(c.m.mem[x:], 7, 0x3f808000) // between two
	c.m.gpr["dst+0(FP)"], c.m.gpr["x+8(FP)"], c.m.gpr["groups+16(FP)"] = dst, x, groups
	c.m.run(programs["round"+dots.Name])
	for i := range groups * 32 {
		want := uint16(bfloat16(u32(c.m.mem[x:], i)))
		if got := uint16(i16(c.m.mem[dst:], i)); got != want {
			t.Errorf("%g becomes %#x, want %#x", f32(c.m.mem[x:], i), got, want)
		}
	}
}
