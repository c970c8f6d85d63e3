package cpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"infer/runtime/tensor"
)

// weights are BF16 values as a block of 8 rows has them, some of them odd.
func weights(rng *rand.Rand, kind, cols int) []byte {
	raw := make([]byte, 2*8*cols)
	scale := float32(math.Exp(rng.Float64()*40 - 20))
	for i := range 8 * cols {
		v := float32(rng.NormFloat64()) * scale
		switch {
		case kind == 1:
			v = 0
		case kind == 2 && rng.IntN(40) == 0:
			v = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[rng.IntN(3)]
		case kind == 3:
			v = max(v, 0)
		case kind == 4:
			v *= 1e-38
		}
		binary.LittleEndian.PutUint16(raw[2*i:], tensor.F32ToBF16(v))
	}
	return raw
}

func near(x, y float32) bool { return math.Abs(float64(x-y)) <= 1e-6*math.Abs(float64(y)) }

// What is made with vectors is what Go makes: blocks, the candidates of Q8 and
// whole units bit for bit where the weights are numbers, ranges and integers of Q4
// nearly.
func TestQuantSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, p := range paths() {
		s := p.quant
		for round := range 400 {
			kind := round % 5
			const cols = 100
			raw := weights(rng, kind, cols)
			var got, want, plain fitArgs
			s.block16(&got, &raw[2*32], 2*cols)
			block16Go(&want, &raw[2*32], 2*cols)
			vals := make([]float32, 8*cols)
			if err := tensor.ToF32(vals, raw, tensor.BF16); err != nil {
				t.Fatal(err)
			}
			s.block(&plain, &vals[32], cols)
			if kind == 2 {
				for k := range got.w {
					for i := range got.w[k] {
						if math.Float32bits(got.w[k][i]) != math.Float32bits(want.w[k][i]) {
							t.Fatalf("%s: weight %d of output %d differs", p.name, k, i)
						}
					}
				}
				continue
			}
			if got.w != want.w || got.lowest != want.lowest || got.highest != want.highest || got.sum != want.sum || got.sum != plain.sum || got.w != plain.w {
				t.Fatalf("%s, kind %d: blocks differ", p.name, kind)
			}
			for _, a := range []*fitArgs{&got, &want} {
				a.low, a.high, a.n = -topQ8, topQ8, triesQ8
			}
			s.triesQ8(&got)
			triesQ8Go(&want)
			for c := range triesQ8 {
				if got.inverse[c] != want.inverse[c] || got.sqq[c] != want.sqq[c] { // of integers: exact
					t.Fatalf("%s, kind %d: candidate %d: inverse %v, want %v; sqq %v, want %v", p.name, kind, c, got.inverse[c], want.inverse[c], got.sqq[c], want.sqq[c])
				}
			}
			switch rng.IntN(6) { // what is wrong with output 0
			case 0:
				want.sum[0] = float32(math.Inf(1 - 2*rng.IntN(2)))
			case 1:
				want.sum[0] = math.Float32frombits(0x7fc12345)
			case 2: // all weights are 0
				for c := range triesQ8 {
					want.sqq[c][0], want.swq[c][0] = 0, 0
				}
			}
			sum := got.sum
			got = want
			s.bestQ8(&got)
			bestQ8Go(&want)
			if got.put != want.put || got.inverse[0] != want.inverse[0] || got.offset[0] != want.offset[0] {
				t.Fatalf("%s, kind %d: scales %x, want %x; inverse %v, want %v", p.name, kind, got.put, want.put, got.inverse[0], want.inverse[0])
			}
			got.sum, want.sum = sum, sum
			s.rangesQ4(&got)
			rangesQ4Go(&want)
			for c := range triesQ4 {
				for i := range 8 { // the divisions round differently
					if !near(got.inverse[c][i], want.inverse[c][i]) || !near(got.offset[c][i], want.offset[c][i]) {
						t.Fatalf("%s, kind %d: range %d: inverse %v, want %v; offset %v, want %v", p.name, kind, c, got.inverse[c], want.inverse[c], got.offset[c], want.offset[c])
					}
				}
			}
			for i := range 8 {
				want.step[i] = (want.highest[i] - want.lowest[i]) / topQ4
				want.low8[i] = want.lowest[i] * float32(rng.Float64())
				want.unit[i] = want.step[i] / float32(1+rng.IntN(maxScale))
				switch rng.IntN(40) {
				case 0, 1:
					want.unit[i] = 0
				case 2:
					want.unit[i], want.step[i] = float32(math.NaN()), float32(math.NaN())
				}
			}
			got = want
			s.wholeQ4(&got)
			wholeQ4Go(&want)
			if got.put != want.put || got.inverse[0] != want.inverse[0] || got.offset[0] != want.offset[0] {
				t.Fatalf("%s, kind %d: whole units differ: %v, want %v", p.name, kind, got.put, want.put)
			}
			for _, a := range []*fitArgs{&got, &want} {
				a.low, a.high = 0, topQ4
			}
			s.whole(&got)
			wholeGo(&want)
			off := 0 // a product and a sum are rounded once or twice
			for k := range got.q {
				for i := range got.q[k] {
					if d := got.q[k][i] - want.q[k][i]; d < -1 || d > 1 || got.q[k][i] < 0 || got.q[k][i] > topQ4 {
						t.Fatalf("%s, kind %d: integer %d of output %d is %d, want %d", p.name, kind, k, i, got.q[k][i], want.q[k][i])
					} else if d != 0 {
						off++
					}
				}
			}
			if off > 8 {
				t.Fatalf("%s, kind %d: %d of %d integers differ by one", p.name, kind, off, groupLen*8)
			}
		}
	}
}

func BenchmarkQuantize(b *testing.B) {
	const cols = 2048
	rng := rand.New(rand.NewPCG(7, 8))
	raw := append(weights(rng, 0, cols), weights(rng, 0, cols)...)
	for _, p := range paths() {
		for _, format := range []int{fmtQ8, fmtQ4} {
			b.Run(p.name+"/"+formats[format].String(), func(b *testing.B) {
				var q quantizer
				q.reset(p.quant, format, cols)
				panel := make([]byte, panelBytes(format, cols))
				for b.Loop() {
					if err := q.panel(panel, raw, tensor.BF16, format); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(lanes*cols), "ns/weight")
			})
		}
	}
}
