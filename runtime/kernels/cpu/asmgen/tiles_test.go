package asmgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// tiles is a processor's tile registers.
type tiles struct {
	rows, bytes [8]int // as configured; 0: not
	data        [8][16][64]byte
}

// tile executes an instruction for tiles (Intel SDM vol. 2).
func (m *machine) tile(op string, args []string) {
	t := &m.tiles
	number := func(s string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "T"))
		if err != nil || t.rows[n] == 0 {
			panic(fmt.Sprintf("%s of tile %s, which is not configured", op, s))
		}
		return n
	}
	each := func(mem string, do func(row int, b []byte), n int) {
		base, index, _ := strings.Cut(strings.TrimSuffix(mem, "*1)"), ")(")
		at := m.address(base + ")")
		for r := range t.rows[n] {
			do(r, m.at(at+uint64(r)*m.gpr[index], t.bytes[n]))
		}
	}
	switch op {
	case "LDTILECFG":
		b := m.at(m.address(args[0]), 64)
		*t = tiles{}
		if b[0] != 1 || b[1] != 0 {
			panic("not palette 1")
		}
		for i := range 8 {
			t.rows[i], t.bytes[i] = int(b[48+i]), int(b[16+2*i])|int(b[17+2*i])<<8
			if t.rows[i] > 16 || t.bytes[i] > 64 {
				panic("a tile is too large")
			}
		}
	case "TILERELEASE":
		*t = tiles{}
	case "TILEZERO":
		t.data[number(args[0])] = [16][64]byte{}
	case "TILELOADD":
		n := number(args[1])
		t.data[n] = [16][64]byte{}
		each(args[0], func(r int, b []byte) { copy(t.data[n][r][:], b) }, n)
	case "TILESTORED":
		n := number(args[0])
		each(args[1], func(r int, b []byte) { copy(b, t.data[n][r][:]) }, n)
	case "TDPBF16PS":
		b, a, d := number(args[0]), number(args[1]), number(args[2])
		if t.rows[a] != t.rows[d] || t.bytes[a] != 4*t.rows[b] || t.bytes[b] != t.bytes[d] {
			panic("tiles do not fit together")
		}
		for r := range t.rows[d] {
			for n := range t.bytes[d] / 4 {
				var even, odd float32
				for k := range t.rows[b] {
					x, w := u32(t.data[a][r][:], k), u32(t.data[b][k][:], n)
					even = fma(math.Float32frombits(x<<16), math.Float32frombits(w<<16), even)
					odd = fma(math.Float32frombits(x&^0xffff), math.Float32frombits(w&^0xffff), odd)
				}
				putF32(t.data[d][r][:], n, f32(t.data[d][r][:], n)+(even+odd))
			}
		}
	default:
		panic("no instruction " + op)
	}
}

// The kernels for tiles, for every number of rows.
func TestTiles(t *testing.T) {
	programs, data := parse(AMX())
	rng := rand.New(rand.NewPCG(7, 8))
	for _, panels := range tilePanels {
		for rows := 1; rows <= TileRows; rows++ {
			for groups := 1; groups <= 3; groups++ {
				c := newCall(data, rng)
				c.rows, c.panels, c.k, c.add = rows, panels, groups, groups%2 == 0
				c.ldx, c.ldw, c.ldd = groups*actTile+64, groups*tileBytes+192, 64*panels+16
				c.x, c.w = c.m.region(c.ldx*(rows-1)+groups*actTile), c.m.region(c.ldw*(panels-1)+groups*tileBytes)
				x, w := c.m.mem[c.x:], c.m.mem[c.w:]
				for _, b := range [][]byte{x[:c.ldx*(rows-1)+groups*actTile], w[:c.ldw*(panels-1)+groups*tileBytes]} {
					for i := range b {
						if b[i] = byte(rng.Uint32()); i%2 == 1 { // numbers of an ordinary size
							b[i] = b[i]&0x83 | 0x3c
						}
					}
				}
				c.run(programs[tileName(panels)])
				for r := range rows {
					for p := range panels {
						for n := range 16 {
							var acc float32
							if c.add {
								acc = c.was(r, p, n)
							}
							for g := range groups {
								for part := range 2 {
									var even, odd float32
									for k := range 16 {
										v, weight := u32(x[r*c.ldx+g*actTile+64*part:], k), u32(w[p*c.ldw+g*tileBytes+64*k:], n)
										even = fma(math.Float32frombits(v<<16), math.Float32frombits(weight<<16), even)
										odd = fma(math.Float32frombits(v&^0xffff), math.Float32frombits(weight&^0xffff), odd)
									}
									acc += even + odd
								}
							}
							c.check(t, tileName(panels), r, p, n, acc)
						}
					}
				}
				if c.m.tiles.rows != [8]int{} {
					t.Fatal("the tiles were not released")
				}
			}
		}
	}
}
