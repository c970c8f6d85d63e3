package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// Philox4x32-10 known answers of the reference implementation (Random123).
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		key       uint64
		ctr, want [4]uint32
	}{
		{0, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{math.MaxUint64, [4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0<<32 | 0xa4093822, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.key, c.ctr); got != c.want {
			t.Errorf("key %x, counter %x: %x, want %x", c.key, c.ctr, got, c.want)
		}
	}
}

func TestUniform(t *testing.T) {
	var bins [10]int
	for seed := range uint64(100) {
		for p := range 100 {
			u := uniform(seed, p)
			if u < 0 || u >= 1 {
				t.Fatalf("seed %d, position %d: %g", seed, p, u)
			}
			bins[int(u*10)]++
		}
	}
	for i, n := range bins { // 1000 expected, standard deviation 30
		if n < 850 || n > 1150 {
			t.Errorf("bin %d has %d of 10000", i, n)
		}
	}
}

func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	row := []float32{0, -1e-30, -1e-9, -0.1, -0.34, -0.35, -0.6931, -1, -10.5, -87.3, -699.9}
	for range 100000 {
		row = append(row, -50*r.Float32())
	}
	w := make([]float64, len(row))
	sum, want := weights(w, row, 0, 1), 0.0
	for i, x := range row {
		e := math.Exp(float64(x))
		if want += e; math.Abs(w[i]-e) > 1e-10*e {
			t.Fatalf("e^%g = %g, want %g", x, w[i], e)
		}
	}
	if math.Abs(sum-want) > 1e-9*want || w[0] != 1 {
		t.Errorf("sum %g, want %g; e^0 = %g", sum, want, w[0])
	}
	inf := float32(math.Inf(-1))
	for _, scale := range []float64{1, 1e300, math.Inf(1)} {
		if weights(w, []float32{-701, inf, 3, -1e9}, 3, scale); !slices.Equal(w[:4], []float64{0, 0, 1, 0}) {
			t.Errorf("scale %g: %v", scale, w[:4])
		}
	}
	if weights(w, []float32{3, 5}, 5, 0.5); math.Abs(w[0]-math.Exp(-1)) > 1e-10 {
		t.Errorf("scaled: %v", w[:2])
	}
}

type samplingGolden struct {
	Temperature           float64
	Prompt, Output, Stops []int32
	Logits                []float32
	TopK                  int     `json:"top_k"`
	TopP                  float64 `json:"top_p"`
	MinP                  float64 `json:"min_p"`
	Repetition, Presence  float64
	Frequency             float64
	Bias                  map[int32]float32
	Allowed               []int32
	BadWords              [][]int32 `json:"bad_words"`
	MinTokens             int       `json:"min_tokens"`
	Greedy                int32
	Kept                  [][2]float64
	Logprobs              [][2]float64
}

func (g *samplingGolden) request() *Request {
	return &Request{Prompt: g.Prompt, Sampling: Sampling{
		Temperature: g.Temperature, TopK: g.TopK, TopP: g.TopP, MinP: g.MinP, Repetition: g.Repetition, Presence: g.Presence,
		Frequency: g.Frequency, LogitBias: g.Bias, Allowed: g.Allowed, BadWords: g.BadWords, MinTokens: g.MinTokens,
		StopIDs: g.Stops[:1], Logprobs: -1, PromptLogprobs: -1,
	}}
}

// What transformers' and vLLM's processors leave, with what probability:
// testdata/sampling/make.py says how the goldens were derived.
func TestSamplingGoldens(t *testing.T) {
	raw, err := os.ReadFile("testdata/sampling/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []samplingGolden
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 30 {
		t.Fatal(err, len(cases))
	}
	var c candidates
	for i, g := range cases {
		r := g.request()
		if err := r.check(len(g.Logits)); err != nil {
			t.Fatal(err)
		}
		s := newSampler(r, 1, g.Stops[1:])
		for _, id := range g.Output {
			s.accept(id)
		}
		ids := slices.Concat(g.Prompt, g.Output)
		before := slices.Clone(g.Logits)
		row := g.Logits
		if n := len(g.Output); s.changes(n) {
			row = s.change(&c, row, ids, n)
		}
		m, at, _ := maximum(row)
		if int32(at) != g.Greedy {
			t.Errorf("case %d: greedy takes %d, want %d", i, at, g.Greedy)
		}
		// Each kept id owns its interval of u, ids ascending.
		sum := 0.0
		for _, k := range g.Kept {
			for _, part := range []float64{0.001, 0.5, 0.999} {
				if k[1] < 1e-7 { // a draw cannot tell
					continue
				}
				u := sum + part*k[1]
				if got := c.draw(row, m, &s.s, u); got != int32(k[0]) {
					t.Errorf("case %d: u = %.9f draws %d, want %g of probability %g", i, u, got, k[0], k[1])
				}
			}
			sum += k[1]
		}
		if !slices.Equal(before, g.Logits) {
			t.Errorf("case %d: the logits were changed in place", i)
		}
		lp, err := logprob(g.Logits, int32(g.Logprobs[2][0]), 6)
		if err != nil || lp.Rank != 3 && g.Logits[int(g.Logprobs[2][0])] != g.Logits[int(g.Logprobs[1][0])] {
			t.Errorf("case %d: %+v, %v", i, lp, err)
		}
		for j, want := range g.Logprobs {
			got := lp.Top[j]
			if got.ID != int32(want[0]) || math.Abs(float64(got.Logprob)-want[1]) > 1e-6*(1+math.Abs(want[1])) {
				t.Errorf("case %d: alternative %d is %+v, want %v", i, j, got, want)
			}
		}
		if math.Abs(float64(lp.Logprob)-g.Logprobs[2][1]) > 1e-6*(1+math.Abs(g.Logprobs[2][1])) {
			t.Errorf("case %d: %g, want %v", i, lp.Logprob, g.Logprobs[2])
		}
	}
}

// slowDraw is draw by its definition, with full sorts.
func slowDraw(row []float32, s *Sampling, u float64) int32 {
	type cand struct {
		id int32
		x  float32
		w  float64
	}
	m := float64(slices.Max(row))
	var all []cand
	for i, x := range row {
		all = append(all, cand{int32(i), x, math.Exp((float64(x) - m) / s.Temperature)})
	}
	slices.SortStableFunc(all, func(a, b cand) int { return cmp.Compare(b.x, a.x) })
	if k := s.TopK; k > 0 && k < len(all) {
		for k < len(all) && all[k].x == all[k-1].x {
			k++
		}
		all = all[:k]
	}
	total := func() (t float64) {
		for _, c := range all {
			t += c.w
		}
		return t
	}
	if s.TopP > 0 && s.TopP < 1 {
		want, sum := s.TopP*total(), 0.0
		for i, c := range all {
			if sum += c.w; sum >= want {
				all = all[:i+1]
				break
			}
		}
	}
	if s.MinP > 0 {
		all = slices.DeleteFunc(all, func(c cand) bool { return c.w < s.MinP })
	}
	slices.SortFunc(all, func(a, b cand) int { return cmp.Compare(a.id, b.id) })
	rest := u * total()
	for _, c := range all {
		if rest -= c.w; rest < 0 {
			return c.id
		}
	}
	return all[len(all)-1].id
}

func TestDrawAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var c candidates
	differ := 0
	for n := range 20000 {
		row := make([]float32, 1+r.IntN(300))
		for i := range row {
			switch r.IntN(12) {
			case 0:
				row[i] = float32(math.Inf(-1))
			case 1, 2:
				row[i] = float32(r.IntN(7) - 3) // ties
			default:
				row[i] = float32(r.NormFloat64() * 5)
			}
		}
		row[r.IntN(len(row))] = float32(r.NormFloat64()) // at least one finite
		s := Sampling{Temperature: []float64{1, 0.01, 0.7, 2, 100}[r.IntN(5)]}
		if r.IntN(2) == 0 {
			s.TopK = 1 + r.IntN(2*len(row))
		}
		if r.IntN(2) == 0 {
			s.TopP = r.Float64()
		}
		if r.IntN(3) == 0 {
			s.MinP = r.Float64()
		}
		m, _, ok := maximum(row)
		if !ok {
			t.Fatal("a row without sense")
		}
		u := r.Float64()
		if got, want := c.draw(row, m, &s, u), slowDraw(row, &s, u); got != want {
			t.Logf("run %d: %d, want %d: %+v u=%g", n, got, want, s, u)
			differ++
		}
	}
	// Sums in another order may put a draw on the other side of a boundary,
	// which happens with probability near 1e-13 a draw.
	if differ > 0 {
		t.Errorf("%d of 20000 differ", differ)
	}
}

func TestTopN(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		row := make([]float32, 1+r.IntN(60))
		order := make([]int32, len(row))
		for i := range row {
			row[i] = float32(r.IntN(20))
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(row[b], row[a]) })
		n := r.IntN(len(row) + 3)
		if got := topN(row, n); !slices.Equal(got, order[:min(n, len(row))]) {
			t.Fatalf("top %d of %v: %v, want %v", n, row, got, order)
		}
		var c candidates
		if k := 1 + r.IntN(len(row)); c.kth(row, k) != row[order[k-1]] {
			t.Fatalf("element %d of %v: %g, want %g", k, row, c.kth(row, k), row[order[k-1]])
		}
	}
}

func TestChooseErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var c candidates
	base := Sampling{Temperature: 1, Logprobs: -1, PromptLogprobs: -1}
	forbid, overflow := base, base
	forbid.Allowed, forbid.BadWords = []int32{1}, [][]int32{{1}}
	overflow.Repetition = 1e-30
	for name, x := range map[string]struct {
		s    Sampling
		row  []float32
		want error
	}{
		"nan":       {base, []float32{1, nan, 2}, errBadLogits},
		"all nan":   {base, []float32{nan, nan, nan}, errBadLogits},
		"inf":       {base, []float32{1, inf, 2}, errBadLogits},
		"none":      {forbid, []float32{1, 2, 3}, errNoToken},
		"overflow":  {overflow, []float32{1, 2e20, 3}, errNoToken},
		"all −inf":  {base, []float32{-inf, -inf}, errNoToken},
		"one is ok": {base, []float32{-inf, 0, -inf}, nil},
	} {
		s := newSampler(&Request{Prompt: []int32{1}, Sampling: x.s}, 1, nil)
		if id, err := s.choose(&c, x.row, []int32{1}, 1); !errors.Is(err, x.want) || x.want == nil && id != 1 {
			t.Errorf("%s: %d, %v, want %v", name, id, err, x.want)
		}
	}
}

func TestRequestCheck(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"":                          func(*Request) {},
		"prompt":                    func(r *Request) { r.Prompt = nil },
		"prompt: id 100":            func(r *Request) { r.Prompt = []int32{100} },
		"prompt: id -1":             func(r *Request) { r.Prompt = []int32{-1} },
		"temperature":               func(r *Request) { r.Sampling.Temperature = math.NaN() },
		"temperature: -1":           func(r *Request) { r.Sampling.Temperature = -1 },
		"temperature: +Inf":         func(r *Request) { r.Sampling.Temperature = math.Inf(1) },
		"top_p":                     func(r *Request) { r.Sampling.TopP = 1.01 },
		"min_p":                     func(r *Request) { r.Sampling.MinP = -0.1 },
		"top_k":                     func(r *Request) { r.Sampling.TopK = -1 },
		"repetition":                func(r *Request) { r.Sampling.Repetition = -1 },
		"presence":                  func(r *Request) { r.Sampling.Presence = math.Inf(-1) },
		"frequency":                 func(r *Request) { r.Sampling.Frequency = math.NaN() },
		"logit_bias: id 100":        func(r *Request) { r.Sampling.LogitBias = map[int32]float32{100: 1} },
		"logit_bias: NaN":           func(r *Request) { r.Sampling.LogitBias = map[int32]float32{1: float32(math.NaN())} },
		"allowed":                   func(r *Request) { r.Sampling.Allowed = []int32{} },
		"allowed token ids: id 100": func(r *Request) { r.Sampling.Allowed = []int32{100} },
		"stop token ids":            func(r *Request) { r.Sampling.StopIDs = []int32{-5} },
		"bad words: word 0":         func(r *Request) { r.Sampling.BadWords = [][]int32{{}} },
		"bad words: id 200":         func(r *Request) { r.Sampling.BadWords = [][]int32{{1, 200}} },
		"logprobs":                  func(r *Request) { r.Sampling.Logprobs = 101 },
		"min_tokens":                func(r *Request) { r.Sampling.MaxTokens, r.Sampling.MinTokens = 1, 2 },
	} {
		r := greedy([]int32{1, 2}, 1)
		change(&r)
		err := r.check(100)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	row := make([]float32, 151936)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 3)
	}
	for _, s := range []Sampling{
		{Temperature: 0},
		{Temperature: 1},
		{Temperature: 0.7, TopP: 0.9},
		{Temperature: 0.7, TopK: 20, TopP: 0.8},
		{Temperature: 1, Repetition: 1.1, TopP: 0.95, MinP: 0.05},
	} {
		b.Run(fmt.Sprintf("t=%g,k=%d,p=%g,rep=%g", s.Temperature, s.TopK, s.TopP, s.Repetition), func(b *testing.B) {
			s.Logprobs = -1
			smp := newSampler(&Request{Prompt: []int32{1, 2, 3}, Sampling: s}, 1, nil)
			var c candidates
			ids := []int32{1, 2, 3, 4}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := smp.choose(&c, row, ids, 3); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("logprobs=5", func(b *testing.B) {
		for b.Loop() {
			if _, err := logprob(row, 77, 5); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Every position draws anew: with all tokens alike, one seed spreads over the
// vocabulary, and no token is favoured by it.
func TestEveryPositionDrawsAnew(t *testing.T) {
	r := Request{Prompt: []int32{1}, Sampling: Sampling{Temperature: 1, Logprobs: -1, PromptLogprobs: -1}}
	s, c, row := newSampler(&r, 7, nil), &candidates{}, make([]float32, 8)
	counts := make([]int, len(row))
	const draws = 4000
	ids := make([]int32, 1, draws+1)
	for range draws {
		id, err := s.choose(c, row, ids, 1)
		if err != nil {
			t.Fatal(err)
		}
		counts[id]++
		ids = append(ids, id)
	}
	for id, n := range counts { // 500 expected, standard deviation 21
		if n < 380 || n > 620 {
			t.Errorf("token %d came %d times of %d: %v", id, n, draws, counts)
		}
	}
}
