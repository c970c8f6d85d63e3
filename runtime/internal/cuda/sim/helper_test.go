package sim

import (
	"encoding/binary"
	"testing"
)

// kernels are what tests launch: mix is x[i] = x[i]*a + b, move is out[i] =
// in[i], add is out[i] += in[i], over n words.
const kernels = `.version 7.8
.target sm_80
.address_size 64
.visible .entry mix(.param .u64 px, .param .u32 pa, .param .u32 pb, .param .u32 pn) {
	.reg .b64 %x; .reg .b32 %i, %c, %t, %a, %b, %n, %v; .reg .pred %p;
	mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %t, %ntid.x; mad.lo.u32 %i, %c, %t, %i;
	ld.param.u32 %n, [pn]; setp.ge.u32 %p, %i, %n; @%p ret;
	ld.param.u64 %x, [px]; ld.param.u32 %a, [pa]; ld.param.u32 %b, [pb];
	mad.wide.u32 %x, %i, 4, %x;
	ld.global.u32 %v, [%x]; mad.lo.u32 %v, %v, %a, %b; st.global.u32 [%x], %v;
	ret;
}
.visible .entry move(.param .u64 po, .param .u64 px, .param .u32 pn) {
	.reg .b64 %x, %o; .reg .b32 %i, %c, %t, %n, %v; .reg .pred %p;
	mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %t, %ntid.x; mad.lo.u32 %i, %c, %t, %i;
	ld.param.u32 %n, [pn]; setp.ge.u32 %p, %i, %n; @%p ret;
	ld.param.u64 %x, [px]; mad.wide.u32 %x, %i, 4, %x;
	ld.param.u64 %o, [po]; mad.wide.u32 %o, %i, 4, %o;
	ld.global.u32 %v, [%x]; st.global.u32 [%o], %v;
	ret;
}
.visible .entry add(.param .u64 po, .param .u64 px, .param .u32 pn) {
	.reg .b64 %x, %o; .reg .b32 %i, %c, %t, %n, %v, %w; .reg .pred %p;
	mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %t, %ntid.x; mad.lo.u32 %i, %c, %t, %i;
	ld.param.u32 %n, [pn]; setp.ge.u32 %p, %i, %n; @%p ret;
	ld.param.u64 %x, [px]; mad.wide.u32 %x, %i, 4, %x;
	ld.param.u64 %o, [po]; mad.wide.u32 %o, %i, 4, %o;
	ld.global.u32 %v, [%x]; ld.global.u32 %w, [%o]; add.u32 %w, %w, %v; st.global.u32 [%o], %w;
	ret;
}
.visible .entry big() {
	.shared .align 4 .b8 s[1024];
	.reg .b32 %r; mov.u32 %r, s; st.shared.u32 [%r], %r;
	ret;
}
.visible .entry wrong(.param .u64 px) {
	.reg .b64 %x; .reg .b32 %v;
	ld.param.u64 %x, [px]; ld.global.u32 %v, [%x+2]; st.global.u32 [%x], %v;
	ret;
}
.visible .entry stop() { trap; }
`

// bench is a machine under test, each device with the kernels loaded.
type bench struct {
	*Machine
	t       testing.TB
	fns     []map[string]uint64
	spare64 uint64 // 64 words that some test may use
}

func machine(t testing.TB, preset string, o Options) *bench {
	t.Helper()
	s, err := Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	return machineOf(t, s, o)
}

func machineOf(t testing.TB, s Spec, o Options) *bench {
	t.Helper()
	m, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{Machine: m, t: t}
	for i := range m.Devices() {
		mod, log, r := m.Device(i).ModuleLoad([]byte(kernels))
		if r != Success {
			t.Fatal(r, log)
		}
		f := map[string]uint64{}
		for _, name := range []string{"mix", "move", "add", "big", "wrong", "stop"} {
			h, r := m.Device(i).ModuleFunction(mod, name)
			b.ok(r)
			f[name] = h
		}
		b.fns = append(b.fns, f)
	}
	return b
}

func (b *bench) ok(r Result) {
	b.t.Helper()
	if r != Success {
		b.t.Fatalf("%s; reports: %v", r, b.Reports())
	}
}

func (b *bench) want(got, want Result) {
	b.t.Helper()
	if got != want {
		b.t.Fatalf("got %s, want %s; reports: %v", got, want, b.Reports())
	}
}

func (b *bench) alloc(d int, n int64) uint64 {
	b.t.Helper()
	p, r := b.Device(d).MemAlloc(n)
	b.ok(r)
	return p
}

func (b *bench) stream(d int) uint64 {
	b.t.Helper()
	s, r := b.Device(d).StreamCreate(false)
	b.ok(r)
	return s
}

func (b *bench) event(d int) uint64 {
	b.t.Helper()
	e, r := b.Device(d).EventCreate(true)
	b.ok(r)
	return e
}

func (b *bench) pinned(n int64) []byte {
	b.t.Helper()
	p, r := b.Device(0).HostAlloc(n)
	b.ok(r)
	return p
}

// upload puts bytes into new device memory.
func (b *bench) upload(d int, data []byte) uint64 {
	b.t.Helper()
	p := b.alloc(d, int64(len(data)))
	b.ok(b.Device(d).CopyToDeviceNow(p, data))
	return p
}

func (b *bench) download(d int, p uint64, n int) []byte {
	b.t.Helper()
	out := make([]byte, n)
	b.ok(b.Device(d).CopyToHostNow(out, p))
	return out
}

func (b *bench) mix(d int, s, x uint64, a, c, n uint32) Result {
	return b.Device(d).Launch(b.fns[d]["mix"], [3]uint32{(n + 63) / 64, 1, 1}, [3]uint32{64, 1, 1}, 0, s, pack(x, a, c, n))
}

func (b *bench) move(d int, s, out, in uint64, n uint32) Result {
	return b.Device(d).Launch(b.fns[d]["move"], [3]uint32{(n + 63) / 64, 1, 1}, [3]uint32{64, 1, 1}, 0, s, pack(out, in, n))
}

// pack lays kernel arguments out at their natural alignment.
func pack(args ...any) []byte {
	var b []byte
	for _, a := range args {
		for len(b)%binary.Size(a) != 0 {
			b = append(b, 0)
		}
		b, _ = binary.Append(b, binary.LittleEndian, a)
	}
	return b
}

// words makes n words of a pattern.
func words(n int, seed uint32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		seed = seed*1664525 + 1013904223
		binary.LittleEndian.PutUint32(b[4*i:], seed>>3|1)
	}
	return b
}

// added is what add makes of words.
func added(a, b []byte) []byte {
	out := make([]byte, len(a))
	for i := 0; i < len(a); i += 4 {
		binary.LittleEndian.PutUint32(out[i:], binary.LittleEndian.Uint32(a[i:])+binary.LittleEndian.Uint32(b[i:]))
	}
	return out
}

// mixed is what mix makes of words.
func mixed(b []byte, a, c uint32) []byte {
	out := make([]byte, len(b))
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(out[i:], binary.LittleEndian.Uint32(b[i:])*a+c)
	}
	return out
}
