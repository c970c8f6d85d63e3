package transfer

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// victim is a buffer whose digest is kept up to date word by word, so that a
// million corruptions of large buffers take seconds.
type victim struct {
	bytes   []byte
	earlier []byte // what a stale copy brings
	digest  kernels.Digest
}

func newVictim(rng *rand.Rand, n int) *victim {
	v := &victim{bytes: make([]byte, n), earlier: make([]byte, n)}
	for _, b := range [][]byte{v.bytes, v.earlier} {
		for i := 0; i+8 <= n; i += 8 {
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
		}
		for i := n &^ 7; i < n; i++ {
			b[i] = byte(rng.Uint32())
		}
	}
	v.digest = kernels.DigestOf(v.bytes)
	return v
}

// with is the digest that the buffer would have with other bytes from lo on.
func (v *victim) with(lo int, part []byte) (d kernels.Digest, changed bool) {
	d = v.digest
	from, to := lo&^7, min((lo+len(part)+7)&^7, len(v.bytes))
	old := v.bytes[from:to]
	now := append([]byte(nil), old...)
	copy(now[lo-from:], part)
	// The sums are over words, each with its position alone.
	a, b := kernels.NewDigest(0), kernels.NewDigest(0)
	a.Add(old, int64(from))
	b.Add(now, int64(from))
	for i := range d {
		d[i] += b[i] - a[i]
	}
	return d, string(now) != string(old)
}

// harm gives other bytes for a part of the buffer, as faulty copies do.
func (v *victim) harm(rng *rand.Rand, most int) (lo int, part []byte) {
	n := len(v.bytes)
	size := 1 + rng.IntN(min(n, most))
	lo = rng.IntN(n - size + 1)
	span := v.bytes[lo : lo+size]
	part = append([]byte(nil), span...)
	switch rng.IntN(7) {
	case 0: // one bit
		part[rng.IntN(size)] ^= 1 << rng.IntN(8)
	case 1: // a few bits
		for range 2 + rng.IntN(6) {
			part[rng.IntN(size)] ^= 1 << rng.IntN(8)
		}
	case 2:
		clear(part)
	case 3: // stale
		copy(part, v.earlier[lo:])
	case 4: // partial: the rest is stale
		copy(part[size/2:], v.earlier[lo+size/2:])
	case 5: // shifted by bytes
		k := 1 + rng.IntN(size)
		copy(part[k%size:], span)
	default: // two blocks swapped
		w := max(1, size/4)
		if size >= 2*w {
			a, b := rng.IntN(size-2*w+1), 0
			b = a + w
			copy(part[a:a+w], span[b:b+w])
			copy(part[b:b+w], span[a:a+w])
		}
	}
	return lo, part
}

// A million corruptions, and each shows in both sums.
func TestDigestDetects(t *testing.T) {
	count := 1_100_000
	if testing.Short() {
		count = 100_000
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var victims []*victim
	for _, n := range []int{16, 17, 24, 64, 100, 1000, 4096, 65536, 1<<20 + 3, 16 << 20} {
		victims = append(victims, newVictim(rng, n))
	}
	done := 0
	for i := 0; done < count; i++ {
		v := victims[i%len(victims)]
		most := 512
		if i%1000 == 0 {
			most = 1 << 16
		}
		lo, part := v.harm(rng, most)
		d, changed := v.with(lo, part)
		if !changed {
			continue
		}
		done++
		if d[0] == v.digest[0] || d[1] == v.digest[1] {
			t.Fatalf("%d bytes: other bytes at %d..%d have the same sum: %x", len(v.bytes), lo, lo+len(part), d)
		}
		if i%997 == 0 && len(v.bytes) <= 65536 {
			// The short way is the digest's own.
			now := append([]byte(nil), v.bytes...)
			copy(now[lo:], part)
			if d != kernels.DigestOf(now) {
				t.Fatal("the test's digest is not the digest")
			}
		}
	}
	for _, v := range victims { // whole buffers
		for name, b := range map[string][]byte{"zeros": make([]byte, len(v.bytes)), "stale": v.earlier, "shifted": append([]byte{0}, v.bytes[:len(v.bytes)-1]...)} {
			if d := kernels.DigestOf(b); d[0] == v.digest[0] || d[1] == v.digest[1] {
				t.Errorf("%d bytes: %s: same sum", len(v.bytes), name)
			}
		}
	}
}

// counted counts what digests read.
type counted struct {
	kernels.Ops
	bytes *int64
}

func (c counted) Digest(_ *kernels.Digest, t tensor.Tensor) { *c.bytes += t.Bytes() }

// Verification reads less than a hundredth of what a step moves anyway, for a
// model of 8 billion parameters over 4 GPUs, and never waits.
func TestCost(t *testing.T) {
	const hidden, layers, vocab = 4096, 32, 128256
	// Rows of a step; each reads the weights, once, and its K/V.
	weights := int64(layers)*(4096*(4096+2*1024)+4096*4096+3*4096*14336)*2 + 2*vocab*hidden*2
	for _, rows := range []int64{1, 32, 512} {
		syncs := map[string]int{}
		for _, mode := range []string{"always", "off"} {
			verify, err := ParseVerify(mode)
			if err != nil {
				t.Fatal(err)
			}
			_, gpus := newWorld(1, 4)
			c := New(Options{Devices: devicesOf(gpus), Router: healthy(gpus), Verify: verify})
			var read int64
			s := &counting{}
			var ends []End
			for _, g := range gpus {
				ends = append(ends, End{Device: g.id, Stream: s, Ops: counted{bytes: &read}, Tensor: tensor.Tensor{
					Buf: sized(rows * hidden * 4), DType: tensor.F32, Shape: tensor.Of(int(rows), hidden),
				}})
			}
			copies := int64(0)
			for i := 1; i < len(ends); i++ {
				if err := c.Move(t.Context(), ends[i], ends[i-1]); err != nil {
					t.Fatal(err)
				}
				copies += ends[i].Tensor.Bytes()
			}
			if err := c.Commit(1); err != nil {
				t.Fatal(err)
			}
			syncs[mode] = s.syncs
			if mode == "off" && read > 0 {
				t.Errorf("off: digests read %d bytes", read)
			}
			if mode == "always" && read != 2*copies {
				t.Errorf("%d rows: digests read %d bytes of %d copied: each end once", rows, read, copies)
			}
			// With the result that the host gets, as whole rows of logits for
			// up to 32 rows, and the batch's tables on each device.
			read += min(rows, 32)*vocab*4 + 4*64*rows
			if share := float64(read) / float64(weights+copies); mode == "always" && share > 0.01 {
				t.Errorf("%d rows: %.2f %% of the step's bytes", rows, 100*share)
			} else if mode == "always" {
				t.Logf("%d rows: verification reads %.4f %% of the step's bytes", rows, 100*share)
			}
		}
		if syncs["always"] != syncs["off"] || syncs["always"] != 0 {
			t.Errorf("%d rows: the host waits %v times", rows, syncs)
		}
	}
}

type sized int64

func (s sized) Size() int64 { return int64(s) }

var _ device.Device = (*gpu)(nil)
