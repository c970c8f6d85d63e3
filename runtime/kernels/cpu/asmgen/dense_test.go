package asmgen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

const denseGroup = denseQuarter * denseQuarters

// denseWord is a weight of a group: of a pair of k, of output n, the odd one or not.
func denseWord(head, group []byte, pair, n, odd int) uint32 {
	quarter, pair := group[pair/4*denseQuarter:], pair%4
	word := 2*n + odd
	at := word/8*16 + pair%2*8 + word%8 // as VPACKUSWB packs two pairs
	code := quarter[at]
	if pair >= 2 {
		code >>= 4
	}
	return uint32(head[code&15])<<8 | uint32(quarter[64+pair/2*64+at])
}

// randomDense fills memory with dense groups of numbers of an ordinary size.
func (c *call) randomDense(head, groups uint64, n int) {
	for i := range 16 {
		c.m.mem[head+uint64(i)] = byte(c.rng.Uint32())&0x83 | 0x3c
	}
	for i := range n * denseGroup {
		c.m.mem[groups+uint64(i)] = byte(c.rng.Uint32())
	}
}

// The kernels for dense panels, for every number of rows, have the very bits of
// those for the same weights in bf16; those that flip bits, for one group.
func TestDense(t *testing.T) {
	programs, data := parse(Dots())
	rng := rand.New(rand.NewPCG(7, 10))
	for f, format := range denseNames {
		for rows := 1; rows <= dots.MaxR; rows++ {
			for log2p := 0; log2p <= denseLog2P(rows); log2p++ {
				for groups := 1; groups <= 2; groups++ {
					c := newCall(data, rng)
					c.rows, c.panels, c.k, c.add = rows, 1<<log2p, groups, groups%2 == 0
					if format == "Flip" {
						c.k = 1
					}
					denseCall(t, c, programs[denseName(f, rows, log2p)], denseName(f, rows, log2p), format == "Flip")
				}
			}
		}
	}
}

func denseCall(t *testing.T, c *call, p *program, name string, flip bool) {
	t.Helper()
	c.ldx, c.ldw, c.ldd = c.k*actDots+64, 64+c.k*denseGroup+128, 64*c.panels+16
	c.x, c.unit = c.m.region(c.ldx*(c.rows-1)+c.k*actDots), c.m.region(c.ldw*(c.panels-1)+64+c.k*denseGroup)
	c.w = c.unit + 64
	c.ordinary(c.x, c.ldx*(c.rows-1)+c.k*actDots)
	for p := range c.panels {
		c.randomDense(c.unit+uint64(p*c.ldw), c.w+uint64(p*c.ldw), c.k)
	}
	if flip {
		c.flip = c.m.region(c.panels * 64 * groupPairs)
		for range 50 {
			at := c.flip + uint64(2*c.rng.IntN(c.panels*32*groupPairs))
			binary.LittleEndian.PutUint16(c.m.mem[at:], uint16(c.rng.Uint32())&0x83ff)
		}
	}
	c.run(p)
	c.fetches(t, name)
	for r := range c.rows {
		for i := range 16 * c.panels {
			p, n := i/16, i%16
			var acc float32
			if c.add {
				acc = c.was(r, p, n)
			}
			head, w := c.m.mem[c.unit+uint64(p*c.ldw):], c.m.mem[c.w+uint64(p*c.ldw):]
			for k := range c.k * groupPairs {
				v, group := u32(c.m.mem[c.x+uint64(r*c.ldx):], k), w[k/groupPairs*denseGroup:]
				pair := denseWord(head, group, k%groupPairs, n, 1)<<16 | denseWord(head, group, k%groupPairs, n, 0)
				if flip {
					pair ^= u32(c.m.mem[c.flip+uint64(64*(p*groupPairs+k)):], n)
				}
				acc = fma(math.Float32frombits(v&^0xffff), math.Float32frombits(pair&^0xffff), acc)
				acc = fma(math.Float32frombits(v<<16), math.Float32frombits(pair<<16), acc)
			}
			c.check(t, name, r, p, n, acc)
		}
	}
}

// Some groups of some panels are unpacked, and nothing else is written.
func TestDenseUnpack(t *testing.T) {
	programs, data := parse(Dots())
	c := newCall(data, rand.New(rand.NewPCG(7, 11)))
	const panels, groups, ldd, ldp = 3, 2, 64 + 3*denseGroup + 64, 2*64*groupPairs + 192
	head := c.m.region(ldd * panels)
	dst := c.m.region(ldp*(panels-1) + groups*64*groupPairs)
	for p := range uint64(panels) {
		c.randomDense(head+p*ldd, head+p*ldd+64, 3)
	}
	arg := c.m.region(80)
	for i, v := range []uint64{dst, ldp, head + 64 + denseGroup, head, ldd, groups, panels} {
		binary.LittleEndian.PutUint64(c.m.mem[arg+uint64(8*i):], v)
	}
	c.m.gpr["arg"] = arg
	c.m.run(programs[denseUnpack+dots.Name])
	for p := range panels {
		src := c.m.mem[head+uint64(p*ldd):]
		for k := range groups * groupPairs {
			group := src[64+(1+k/groupPairs)*denseGroup:]
			for n := range 16 {
				want := denseWord(src, group, k%groupPairs, n, 1)<<16 | denseWord(src, group, k%groupPairs, n, 0)
				if got := u32(c.m.mem[dst+uint64(p*ldp+64*k):], n); got != want {
					t.Fatalf("panel %d, pair %d, output %d: %#x, want %#x", p, k, n, got, want)
				}
			}
		}
		if gap := c.m.mem[dst+uint64(p*ldp+groups*64*groupPairs)]; p < panels-1 && gap != 0 {
			t.Errorf("panel %d: written after its end", p)
		}
	}
}
