package cpu

import (
	"testing"
	"testing/fstest"
	"unsafe"

	"golang.org/x/sys/unix"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// resident is how many bytes of m the system has given memory for.
func resident(t *testing.T, m []byte) int {
	t.Helper()
	page := unix.Getpagesize()
	pages := make([]byte, (len(m)+page-1)/page)
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&pages[0]))); e != 0 {
		t.Fatal(e)
	}
	n := 0
	for _, p := range pages {
		n += int(p&1) * page
	}
	return n
}

// K/V of a long context takes memory as it is used: little for the first
// token; where half is used, huge pages with what was there.
func TestPagesAsUsed(t *testing.T) {
	b := openFor(t, Options{Threads: 1})
	o, err := b.NewOps(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := kernels.Heads{Q: 3, KV: 3, Dim: 64}
	alloc := func(d tensor.DType, dims ...int) tensor.Tensor {
		x := tensor.Tensor{DType: d, Shape: tensor.Of(dims...)}
		if x.Buf, err = b.dev.Alloc(x.Bytes()); err != nil {
			t.Fatal(err)
		}
		buf := x.Buf.(*buffer)
		t.Cleanup(func() { _ = buf.Free() })
		return x
	}
	const blocks, layers = 256, 20 // 1.5 MiB for each K and V
	qkv, cos := alloc(tensor.F32, 1, h.Cols()), alloc(tensor.F32, blocks*kernels.BlockSize, 32)
	var kv []kernels.KVLayer
	for range layers {
		k := alloc(tensor.BF16, blocks, h.KV, kernels.BlockSize, h.Dim)
		kv = append(kv, kernels.KVLayer{K: k, V: alloc(tensor.BF16, blocks, h.KV, kernels.BlockSize, h.Dim)})
	}
	put := func(pos int) {
		x := floats(qkv)
		for i := range x {
			x[i] = float32(pos%64 + i%7)
		}
		o.Begin(&kernels.Batch{Positions: []int32{int32(pos)}, Slots: []int32{int32(pos)}})
		for _, l := range kv {
			o.Rotary(kernels.RotaryArgs{QKV: qkv, Heads: h, Cos: cos, Sin: cos, KV: l})
		}
	}
	total := func() (n int) {
		for _, l := range kv {
			n += resident(t, whole(l.K)) + resident(t, whole(l.V))
		}
		return n
	}
	before := total()
	put(0)
	if n := total() - before; n <= 0 || n > 2*layers*5*unix.Getpagesize() {
		t.Errorf("one token of %d layers takes %d bytes", layers, n)
	}
	first := append([]byte(nil), mem(kv[layers-1].V)[:6<<10]...)
	wide := func() (n int) {
		for _, l := range kv {
			for _, x := range []tensor.Tensor{l.K, l.V} {
				if from := x.Buf.(*buffer).from; from.slab.wide[from.at/hugePage] {
					n++
				}
			}
		}
		return n
	}
	for pos := 1; pos < blocks*kernels.BlockSize; pos += 8 * kernels.BlockSize {
		before := wide()
		put(pos)
		if n := wide() - before; n > 3 { // tensors that lie in the same one
			t.Fatalf("position %d: a step makes huge pages for %d tensors", pos, n)
		}
		from := kv[0].K.Buf.(*buffer).from
		if s := from.slab; s.wide[from.at/hugePage] != (pos >= blocks*kernels.BlockSize/2) {
			t.Fatalf("position %d: %v", pos, s.wide)
		}
	}
	for range 2 * layers { // one huge page in a step
		put(blocks*kernels.BlockSize - 1)
	}
	same := 0
	for i, x := range mem(kv[layers-1].V)[:6<<10] {
		if x == first[i] {
			same++
		}
	}
	if same < 6<<10-h.KV*h.Dim*2 { // position 1 was written since
		t.Errorf("only %d bytes of the first block are as they were", same)
	}
	for _, w := range kv[0].K.Buf.(*buffer).from.slab.wide {
		if !w {
			t.Errorf("a full cache keeps small pages: %v", kv[0].K.Buf.(*buffer).from.slab.wide)
			break
		}
	}
}

// whole is the pages that a tensor lies in.
func whole(x tensor.Tensor) []byte {
	b := x.Buf.(*buffer)
	page := unix.Getpagesize()
	lo, hi := b.from.at/page*page, (b.from.at+int(b.size))/page*page
	return b.from.slab.mem[lo:hi]
}

// What control groups allow, in whatever way they are mounted; what they have
// of files counts as free.
func TestMemoryOfControlGroups(t *testing.T) {
	const mib = 1 << 20
	meminfo := "MemTotal:       8192 kB\nMemAvailable:   6144 kB\n"
	for name, c := range map[string]struct {
		files       map[string]string
		total, free int64
	}{
		"none":      {nil, 8 * mib, 6 * mib},
		"unlimited": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8 * mib, 6 * mib},
		"a container, full of files": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4194304\n", "sys/fs/cgroup/memory.current": "4194304\n",
			"sys/fs/cgroup/memory.stat": "anon 1048576\nfile 3145728\ninactive_file 2097152\nactive_file 1048576\n",
		}, 4 * mib, 3 * mib},
		"a service in a slice with less": {map[string]string{
			"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/b.service/memory.max": "4194304\n",
			"sys/fs/cgroup/a.slice/memory.max": "2097152\n", "sys/fs/cgroup/a.slice/memory.current": "1048576\n",
		}, 2 * mib, 1 * mib},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4194304\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "3145728\n",
			"sys/fs/cgroup/memory/a/memory.stat": "inactive_file 0\ntotal_inactive_file 1048576\ntotal_active_file 0\n",
		}, 4 * mib, 2 * mib},
		"version 1, a container": {map[string]string{
			"proc/self/cgroup": "4:memory:/docker/0123\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4194304\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1048576\n",
		}, 4 * mib, 3 * mib},
	} {
		root := fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}
		for f, s := range c.files {
			root[f] = &fstest.MapFile{Data: []byte(s)}
		}
		if total, free := memoryIn(root); total != c.total || free != c.free {
			t.Errorf("%s: %d of %d bytes free, want %d of %d", name, free, total, c.free, c.total)
		}
	}
}
