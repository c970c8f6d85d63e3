package kvcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"infer/runtime/kernels"
)

func ids(n, salt int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i*7 + salt)
	}
	return out
}

func mustAllocate(t *testing.T, m *BlockManager, n int) []int32 {
	t.Helper()
	table, ok := m.Allocate(nil, n)
	if !ok {
		t.Fatalf("%d blocks refused with %d available", n, m.Available())
	}
	return table
}

func TestKeys(t *testing.T) {
	a := Extend(nil, "", ids(40, 0))
	if len(a) != 2 {
		t.Fatalf("40 ids have %d full blocks of %d", len(a), kernels.BlockSize)
	}
	// Cut anywhere, the chain is the same.
	b := Extend(nil, "", ids(40, 0)[:17])
	if b = Extend(b, "", ids(40, 0)); !slices.Equal(a, b) {
		t.Fatal("keys depend on how they were extended")
	}
	if c := Extend(nil, "tenant", ids(40, 0)); c[0] == a[0] || c[1] == a[1] {
		t.Fatal("another salt gave the same key")
	}
	// The second block's ids are equal, the first's are not.
	d := ids(40, 0)
	d[3]++
	if e := Extend(nil, "", d); e[1] == a[1] {
		t.Fatal("a key does not depend on the blocks before it")
	}
	// Nothing of an id is cut off.
	x, y := make([]int32, 16), make([]int32, 16)
	y[15] = 1 << 24
	if Next(Key{}, x) == Next(Key{}, y) {
		t.Fatal("high bits of an id are ignored")
	}
}

func TestShareAndEvict(t *testing.T) {
	m := NewBlockManager(4)
	keys := Extend(nil, "", ids(48, 0))
	a := mustAllocate(t, m, 3)
	for i, k := range keys {
		m.Publish(a[i], k)
	}
	if hit, free := m.Lookup(keys); hit != 3 || free != 0 {
		t.Fatalf("Lookup = %d, %d", hit, free)
	}
	b := m.Acquire(nil, keys[:2])
	if !slices.Equal(b, a[:2]) {
		t.Fatalf("shared %v, want %v", b, a[:2])
	}
	m.Release(a)
	if m.Available() != 2 {
		t.Fatalf("%d available, want the unused block and the third of the sequence", m.Available())
	}
	m.Release(b)
	if hit, free := m.Lookup(keys); hit != 3 || free != 3 {
		t.Fatalf("after release: Lookup = %d, %d", hit, free)
	}
	// The block that never held anything goes first, then the prefix's end.
	mustAllocate(t, m, 2)
	if hit, _ := m.Lookup(keys); hit != 2 || m.Evicted() != 1 {
		t.Fatalf("after two allocations %d hits, %d evicted", hit, m.Evicted())
	}
	if _, ok := m.Allocate(nil, 3); ok || m.Available() != 2 {
		t.Fatal("allocated more than there is, or a part of it")
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	m := NewBlockManager(3)
	var keys [3]Key
	table := mustAllocate(t, m, 3)
	for i := range keys {
		keys[i] = Extend(nil, fmt.Sprint(i), ids(16, i))[0]
		m.Publish(table[i], keys[i])
	}
	for _, i := range []int{1, 0, 2} {
		m.Release(table[i : i+1])
	}
	m.Release(m.Acquire(nil, keys[1:2])) // used again: now the youngest
	mustAllocate(t, m, 2)
	for i, want := range []int{0, 1, 0} {
		if hit, _ := m.Lookup(keys[i : i+1]); hit != want {
			t.Errorf("block of key %d: found %d times, want %d", i, hit, want)
		}
	}
}

func TestPublishTwice(t *testing.T) {
	m := NewBlockManager(2)
	k := Extend(nil, "", ids(16, 0))[0]
	a, b := mustAllocate(t, m, 1), mustAllocate(t, m, 1)
	m.Publish(a[0], k)
	m.Publish(b[0], k)
	if got := m.Acquire(nil, []Key{k}); got[0] != a[0] {
		t.Fatalf("key finds block %d, the first published is %d", got[0], a[0])
	}
	if err := m.Check([][]int32{a, a, b}); err != nil {
		t.Fatal(err)
	}
}

// Long random use: what a sequence was given is never given to another unless
// both asked for the same context, and the books balance after every step.
func TestRandomUse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const blocks = 40
	m := NewBlockManager(blocks)
	type seq struct {
		table []int32
		keys  []Key
	}
	var live []seq
	content := make(map[int32]Key) // what the owner wrote
	for step := range 20000 {
		if len(live) > 0 && (rng.IntN(2) == 0 || len(live) > 8) {
			i := rng.IntN(len(live))
			m.Release(live[i].table)
			live = slices.Delete(live, i, i+1)
		} else {
			prompt := ids(16*(1+rng.IntN(8)), rng.IntN(3))
			prompt[16*rng.IntN(len(prompt)/16)] += int32(rng.IntN(4)) // forks anywhere
			s := seq{keys: Extend(nil, fmt.Sprint(rng.IntN(2)), prompt)}
			hit, free := m.Lookup(s.keys)
			if need := len(s.keys) - hit; need+free <= m.Available() {
				s.table = m.Acquire(s.table, s.keys[:hit])
				for i, id := range s.table {
					if content[id] != s.keys[i] {
						t.Fatalf("step %d: block %d was overwritten while in the cache", step, id)
					}
				}
				var ok bool
				if s.table, ok = m.Allocate(s.table, need); !ok {
					t.Fatalf("step %d: Lookup said %d blocks are enough", step, need)
				}
				for i := hit; i < len(s.table); i++ {
					content[s.table[i]] = s.keys[i]
					if rng.IntN(8) > 0 {
						m.Publish(s.table[i], s.keys[i])
					}
				}
				live = append(live, s)
			}
		}
		for _, s := range live {
			for i, id := range s.table {
				if content[id] != s.keys[i] {
					t.Fatalf("step %d: block %d of a live sequence was overwritten", step, id)
				}
			}
		}
		tables := make([][]int32, len(live))
		for i := range live {
			tables[i] = live[i].table
		}
		if err := m.Check(tables); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	if m.Evicted() == 0 {
		t.Fatal("the run never evicted: it is too short to mean anything")
	}
}

// Check finds each kind of damage.
func TestCheckFindsDamage(t *testing.T) {
	fresh := func() (*BlockManager, [][]int32) {
		m := NewBlockManager(5)
		table := mustAllocate(t, m, 2)
		m.Publish(table[0], Key{1})
		return m, [][]int32{table}
	}
	for name, harm := range map[string]func(m *BlockManager, tables [][]int32) [][]int32{
		"leak":         func(_ *BlockManager, _ [][]int32) [][]int32 { return nil },
		"stolen":       func(_ *BlockManager, ts [][]int32) [][]int32 { return append(ts, ts[0]) },
		"free in use":  func(_ *BlockManager, ts [][]int32) [][]int32 { return append(ts, []int32{4}) },
		"no block":     func(_ *BlockManager, ts [][]int32) [][]int32 { return append(ts, []int32{5}) },
		"lost free":    func(m *BlockManager, ts [][]int32) [][]int32 { m.first = m.blocks[m.first].next; return ts },
		"lost key":     func(m *BlockManager, ts [][]int32) [][]int32 { clear(m.cached); return ts },
		"unpublished":  func(m *BlockManager, ts [][]int32) [][]int32 { m.blocks[ts[0][0]].published = false; return ts },
		"shared plain": func(m *BlockManager, ts [][]int32) [][]int32 { m.blocks[ts[0][1]].refs++; return append(ts, ts[0][1:]) },
	} {
		m, tables := fresh()
		if err := m.Check(tables); err != nil {
			t.Fatalf("%s: already damaged: %v", name, err)
		}
		if err := m.Check(harm(m, tables)); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func BenchmarkNextKey(b *testing.B) {
	x := ids(16, 0)
	var k Key
	for b.Loop() {
		k = Next(k, x)
	}
}
