package ptx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// program wraps a kernel body that has %out (its results), %i (threadIdx.x),
// %o (the address of the thread's word of out) and some registers to use.
func program(decls, body string) string {
	return `.version 7.8
.target sm_80
.address_size 64
` + decls + `
.visible .entry k(.param .u64 po) {
	.reg .b64 %out, %o, %A, %B, %D;
	.reg .b32 %i, %r<20>, %n;
	.reg .b16 %h<4>;
	.reg .pred %p, %q, %u;
	mov.u32 %i, %tid.x;
	ld.param.u64 %out, [po];
	mad.wide.u32 %o, %i, 4, %out;
` + body + `
	ret;
}
`
}

// execute runs a program on one block and returns a word of out a thread.
func execute(t testing.TB, decls, body string, threads int, opts Options) ([]uint32, error) {
	t.Helper()
	m, err := Parse(program(decls, body))
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice()
	out, _ := d.alloc("out", 4*threads)
	if opts.MaxInstructions == 0 {
		opts.MaxInstructions = 1 << 20
	}
	_, err = m.Kernel("k").Launch(context.Background(), Config{Grid: grid(1, 1), Block: grid(threads, 1)}, pack(out), d.regions, opts)
	return get[uint32](t, d, out, threads), err
}

func TestPrograms(t *testing.T) {
	const checked = CheckShared | CheckLocal
	for _, c := range []struct {
		name, decls, body string
		threads           int
		want              func(i int) uint32
	}{
		{"nested branches meet again", "", `
	setp.lt.u32 %p, %i, 10; @%p bra LOW;
	setp.lt.u32 %q, %i, 20; @%q bra MID;
	mov.u32 %r1, 3; bra JOIN;
MID:	mov.u32 %r1, 2; bra JOIN;
LOW:	mov.u32 %r1, 1;
JOIN:	activemask.b32 %r2;
	shfl.sync.bfly.b32 %r3, %r1, 16, 31, -1;
	mad.lo.u32 %r1, %r1, 10, %r3;
	setp.eq.u32 %p, %r2, -1; @!%p mov.u32 %r1, 999;
	st.global.u32 [%o], %r1;`, 32, func(i int) uint32 {
			v := func(i int) uint32 { return uint32(1 + i/10 - i/30*1) }
			return v(i)*10 + v(i^16)
		}},
		{"a loop each lane leaves at its own time", "", `
	mov.u32 %r1, 0; mov.u32 %r2, 0;
LOOP:	add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1;
	setp.le.u32 %p, %r1, %i; @%p bra LOOP;
	activemask.b32 %r3; setp.ne.u32 %p, %r3, -1; @%p mov.u32 %r2, 0;
	st.global.u32 [%o], %r2;`, 64, func(i int) uint32 { return uint32(i * (i + 1) / 2) }},
		{"a loop whose body lies before its head", "", `
	mov.u32 %r1, 0; mov.u32 %r2, 5; bra HEAD;
BODY:	shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;
	add.u32 %r1, %r1, 1; sub.u32 %r2, %r2, 1;
	setp.eq.u32 %p, %r2, 0; @%p bra DONE;
HEAD:	and.b32 %r4, %i, 1; setp.eq.u32 %p, %r4, 0; @%p bra BODY;
	add.u32 %r5, %r5, 1; bra BODY;
DONE:	st.global.u32 [%o], %r1;`, 32, func(int) uint32 { return 5 }},
		{"lanes that end early do not hold up a shuffle of the others", "", `
	setp.ge.u32 %p, %i, 8; @%p ret;
	shfl.sync.bfly.b32 %r1, %i, 4, 31, 0xff;
	st.global.u32 [%o], %r1;`, 32, func(i int) uint32 {
			if i < 8 {
				return uint32(i ^ 4)
			}
			return 0
		}},
		{"a branch table", "", `
	rem.u32 %r1, %i, 3;
T:	.branchtargets A0, A1, A2;
	brx.idx %r1, T;
A0:	mov.u32 %r2, 100; bra E;
A1:	mov.u32 %r2, 200; bra E;
A2:	mov.u32 %r2, 300;
E:	activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3;
	st.global.u32 [%o], %r2;`, 32, func(i int) uint32 { return uint32(100*(i%3+1) + 32) }},
		{"a device function with a divergent return", `
.func (.param .b32 r) f(.param .b32 a, .param .b64 b) {
	.reg .b32 %x, %y; .reg .b64 %z; .reg .pred %p;
	ld.param.b32 %x, [a]; ld.param.b64 %z, [b]; cvt.u32.u64 %y, %z;
	setp.lt.u32 %p, %x, 7; @%p bra SMALL;
	add.u32 %x, %x, %y; st.param.b32 [r], %x; ret;
SMALL:	st.param.b32 [r], 77; ret;
}`, `
	{ .param .b32 a; .param .b64 b; .param .b32 r;
	st.param.b32 [a], %i; st.param.b64 [b], 1000;
	call.uni (r), f, (a, b);
	ld.param.b32 %r1, [r]; }
	{ .param .b32 a; .param .b64 b; .param .b32 r;
	st.param.b32 [a], 9; st.param.b64 [b], 1;
	setp.eq.u32 %p, %i, 3;
	@%p call (r), f, (a, b);
	@%p ld.param.b32 %r1, [r]; }
	activemask.b32 %r2; setp.ne.u32 %p, %r2, -1; @%p mov.u32 %r1, 0;
	st.global.u32 [%o], %r1;`, 32, func(i int) uint32 {
			switch {
			case i == 3:
				return 10
			case i < 7:
				return 77
			}
			return uint32(i + 1000)
		}},
		{"local memory, of each thread its own, by generic address", "", `
	.local .align 8 .b8 buf[64];
	mov.u64 %A, buf; cvta.local.u64 %A, %A;
	and.b32 %r1, %i, 7; mad.wide.u32 %B, %r1, 8, %A;
	st.u32 [%B], %i; st.u32 [%B+4], 5;
	ld.v2.u32 {%r2, %r3}, [%B]; add.u32 %r2, %r2, %r3;
	isspacep.local %p, %B; @!%p mov.u32 %r2, 0;
	isspacep.shared %p, %B; @%p mov.u32 %r2, 0;
	st.global.u32 [%o], %r2;`, 64, func(i int) uint32 { return uint32(i + 5) }},
		{"one generic load from three spaces", ".const .align 4 .b32 table[2] = {40, 50};", `
	.shared .align 4 .b32 s[32];
	.local .align 4 .b32 l;
	mov.u64 %A, s; mad.wide.u32 %A, %i, 4, %A; st.shared.u32 [%A], %i; cvta.shared.u64 %A, %A;
	mov.u64 %B, l; cvta.local.u64 %B, %B; st.local.u32 [l], 1000;
	setp.lt.u32 %p, %i, 10; selp.b64 %A, %A, %B, %p;
	mov.u64 %D, table; cvta.const.u64 %D, %D;
	setp.gt.u32 %p, %i, 20; @%p add.u64 %A, %D, 4;
	ld.u32 %r1, [%A];
	ld.const.u32 %r2, [table]; add.u32 %r1, %r1, %r2;
	st.global.u32 [%o], %r1;`, 32, func(i int) uint32 {
			switch {
			case i < 10:
				return uint32(i + 40)
			case i <= 20:
				return 1040
			}
			return 90
		}},
		{"narrow loads and stores, wider registers", "", `
	.shared .align 8 .b8 s[512];
	mov.u32 %r1, s; shl.b32 %r2, %i, 3; add.u32 %r1, %r1, %r2;
	neg.s32 %r2, %i; st.shared.u8 [%r1], %r2; st.shared.u16 [%r1+2], %r2;
	st.shared.u8 [%r1+4], 200;
	ld.shared.s8 %r3, [%r1]; ld.shared.s16 %A, [%r1+2]; ld.shared.u8 %h1, [%r1+4];
	cvt.u32.u64 %r4, %A; add.s32 %r3, %r3, %r4; cvt.u32.u16 %r4, %h1; add.s32 %r3, %r3, %r4;
	st.global.u32 [%o], %r3;`, 64, func(i int) uint32 { return uint32(200 - 2*i) }},
		{"special registers", "", `
	mov.u32 %r1, %ntid.x; mov.u32 %r2, %laneid; mov.u32 %r3, %warpid; mov.u32 %r4, %nctaid.x;
	mad.lo.u32 %r1, %r1, 1000, %r2; mad.lo.u32 %r1, %r3, 100, %r1; add.u32 %r1, %r1, %r4;
	mov.u32 %r5, %lanemask_lt; popc.b32 %r5, %r5; sub.u32 %r5, %r5, %r2; add.u32 %r1, %r1, %r5;
	mov.u64 %A, %clock64; mov.u64 %B, %clock64; setp.le.u64 %p, %B, %A; @%p mov.u32 %r1, 0;
	add.u32 %r1, %r1, WARP_SZ;
	st.global.u32 [%o], %r1;`, 70, func(i int) uint32 { return uint32(70000 + i%32 + i/32*100 + 1 + 32) }},
		{"votes, matches and reductions", "", `
	setp.lt.u32 %p, %i, 12;
	vote.sync.ballot.b32 %r1, %p, -1;
	vote.sync.any.pred %q, %p, -1; selp.u32 %r2, 1, 0, %q;
	vote.sync.all.pred %q, %p, -1; selp.u32 %r3, 1, 0, %q;
	vote.sync.uni.pred %q, %p, -1; selp.u32 %r4, 1, 0, %q;
	shr.u32 %r5, %i, 3; match.any.sync.b32 %r6, %r5, -1;
	match.all.sync.b32 %r7|%q, %r5, -1; selp.u32 %r8, 1, 0, %q;
	redux.sync.add.s32 %r9, %i, -1;
	redux.sync.max.u32 %r10, %i, -1;
	add.u32 %r1, %r1, %r9; add.u32 %r1, %r1, %r10;
	add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r8; add.u32 %r1, %r1, %r7;
	popc.b32 %r6, %r6; add.u32 %r1, %r1, %r6;
	st.global.u32 [%o], %r1;`, 32, func(int) uint32 { return 0xfff + 496 + 31 + 1 + 8 }},
		{"shuffles of every mode, in segments", "", `
	shfl.sync.up.b32 %r1|%p, %i, 3, 0, -1; selp.u32 %r2, 1000, 0, %p;
	shfl.sync.down.b32 %r3|%p, %i, 2, 0x1c03, -1; selp.u32 %r4, 2000, 0, %p; // segments of 4
	shfl.sync.idx.b32 %r5, %i, 1, 0x181f, -1; // segments of 8
	mad.lo.u32 %r1, %r1, 100000, %r2; add.u32 %r1, %r1, %r4; mad.lo.u32 %r1, %r3, 10000, %r1; mad.lo.u32 %r1, %r5, 20, %r1;
	st.global.u32 [%o], %r1;`, 32, func(i int) uint32 {
			up, pu := i-3, 1
			if up < 0 {
				up, pu = i, 0
			}
			down, pd := i+2, 1
			if i%4 >= 2 {
				down, pd = i, 0
			}
			return uint32(up*100000 + pu*1000 + pd*2000 + down*10000 + (i/8*8+1)*20)
		}},
		{"different member masks at one shuffle", "", `
	and.b32 %r1, %i, 1; setp.eq.u32 %p, %r1, 0; selp.b32 %r2, 0x55555555, 0xAAAAAAAA, %p;
	match.any.sync.b32 %r3, %r1, -1; xor.b32 %r3, %r3, %r2;
	shfl.sync.bfly.b32 %r4, %i, 2, 31, %r2; add.u32 %r4, %r4, %r3;
	st.global.u32 [%o], %r4;`, 32, func(i int) uint32 { return uint32(i ^ 2) }},
		{"barriers with reductions", "", `
	setp.lt.u32 %p, %i, 40;
	barrier.sync.aligned 1;
	bar.red.popc.u32 %r1, 0, %p;
	bar.red.and.pred %q, 0, %p; selp.u32 %r2, 100, 0, %q;
	bar.red.or.pred %q, 0, %p; selp.u32 %r3, 1000, 0, %q;
	add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
	st.global.u32 [%o], %r1;`, 96, func(int) uint32 { return 1040 }},
		{"warps in pairs by named barriers, producer and consumer", "", `
	.shared .align 4 .b32 s[64];
	shr.u32 %r1, %i, 5; mov.u32 %r2, s; and.b32 %r3, %i, 31; shl.b32 %r4, %r3, 2; add.u32 %r2, %r2, %r4;
	setp.eq.u32 %p, %r1, 0; @!%p bra CONSUMER;
	mul.lo.u32 %r5, %i, 3; st.shared.u32 [%r2], %r5;
	bar.arrive 2, 64; bra END;
CONSUMER:	bar.sync 2, 64; ld.shared.u32 %r5, [%r2];
END:	st.global.u32 [%o], %r5;`, 64, func(i int) uint32 { return uint32(i % 32 * 3) }},
		{"a warp that ended does not hold up a barrier", "", `
	.shared .align 4 .b32 s[64];
	setp.ge.u32 %p, %i, 64; @%p exit;
	mov.u32 %r2, s; shl.b32 %r4, %i, 2; add.u32 %r2, %r2, %r4;
	st.shared.u32 [%r2], %i;
	bar.sync 0;
	xor.b32 %r4, %r4, 128; mov.u32 %r2, s; add.u32 %r2, %r2, %r4;
	ld.shared.u32 %r5, [%r2]; st.global.u32 [%o], %r5;`, 128, func(i int) uint32 {
			if i < 64 {
				return uint32(i ^ 32)
			}
			return 0
		}},
		{"registers that hide others, and labels of a block", "", `
	mov.u32 %r1, 1;
	{ .reg .b32 %r1; .reg .pred p; mov.u32 %r1, 50; setp.eq.u32 p, %i, 2; @p bra L; mov.u32 %r2, %r1; L: }
	{ .reg .b32 %r1; mov.u32 %r1, 60; bra L; L: add.u32 %r3, %r1, 0; }
	add.u32 %r1, %r1, %r3; st.global.u32 [%o], %r1;`, 32, func(int) uint32 { return 61 }},
		{"lanes wait for each other at a shuffle in a branch", "", `
	setp.lt.u32 %p, %i, 16; @%p bra A;
	shfl.sync.bfly.b32 %r1, %i, 1, 31, 0xffff0000; bra J;
A:	shfl.sync.bfly.b32 %r1, %i, 2, 31, 0xffff;
J:	st.global.u32 [%o], %r1;`, 32, func(i int) uint32 {
			if i < 16 {
				return uint32(i ^ 2)
			}
			return uint32(i ^ 1)
		}},
		{"a register read before it is written is zero", "", `
	setp.eq.u32 %p, %i, 3; @%p mov.u32 %r9, 5;
	st.global.u32 [%o], %r9;`, 32, func(i int) uint32 { return uint32(i / 3 % 2 * 5 * (1 - min(i/4, 1))) }},
	} {
		got, err := execute(t, c.decls, c.body, c.threads, Options{Workers: 1, Checks: checked})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, g := range got {
			if g != c.want(i) {
				t.Errorf("%s: thread %d gives %d, want %d", c.name, i, g, c.want(i))
				break
			}
		}
	}
}

// TestFaults runs programs that are wrong and wants the fault, and the place.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, decls, body string
		threads           int
		want              FaultKind
		text              string
	}{
		{"a load behind the end", "", "ld.global.u32 %r1, [%o+4];", 32, FaultIllegal, "thread (31,0,0)"},
		{"a load of nothing", "", "mov.u64 %A, 0; ld.global.u32 %r1, [%A];", 32, FaultIllegal, "global:0x0"},
		{"an address that is negative", "", "mov.u64 %A, -4; ld.u32 %r1, [%A];", 32, FaultIllegal, "ld.u32"},
		{"a misaligned store", "", "st.global.u32 [%o+2], %i;", 32, FaultMisaligned, "thread (0,0,0)"},
		{"a vector store that is misaligned", "", "st.global.v2.u32 [%o], {%i, %i};", 32, FaultMisaligned, "thread (1,0,0)"},
		{"shared memory behind its end", "", ".shared .b32 s[4]; st.shared.u32 [s+16], %i;", 1, FaultIllegal, "there are 16"},
		{"local memory behind its end", "", ".local .align 4 .b8 l[16]; st.local.u32 [l+16], %i;", 1, FaultIllegal, "a thread has 16"},
		{"a write to a constant", ".const .b32 c = 4;", "mov.u64 %A, c; st.u32 [%A], 1;", 1, FaultReadOnly, "st.u32"},
		{"shared memory nothing wrote", "", ".shared .b32 s[4]; ld.shared.u32 %r1, [s+8];", 1, FaultUninitialised, "shared:0x8"},
		{"local memory nothing wrote", "", ".local .b32 l[4]; ld.local.u32 %r1, [l+8];", 1, FaultUninitialised, "local:0x8"},
		{"an endless loop", "", "L: bra L;", 1, FaultBudget, "bra L"},
		{"a trap", "", "setp.eq.u32 %p, %i, 9; @%p trap;", 32, FaultTrap, "thread (9,0,0)"},
		{"a barrier in both branches of a warp", "", "setp.lt.u32 %p, %i, 7; @%p bra S; bar.sync 0; bra E; S: bar.sync 0; E: add.u32 %r1, %r1, 1;", 32, FaultDivergence, "wait at"},
		{"a guarded barrier", "", "setp.lt.u32 %p, %i, 7; @%p bar.sync 0;", 32, FaultDivergence, "predicate"},
		{"warps at barriers of different places", "", "setp.lt.u32 %p, %i, 32; @%p bra S; bar.sync 0; bra E; S: bar.sync 0; E: add.u32 %r1, %r1, 1;", 64, FaultBarrier, "different places"},
		{"warps at different barriers", "", "setp.lt.u32 %p, %i, 32; @%p bra S; bar.sync 1; bra E; S: bar.sync 2; E: add.u32 %r1, %r1, 1;", 64, FaultDeadlock, "barrier 1"},
		{"a barrier nobody else joins", "", "bar.sync 3, 64;", 32, FaultIllegalOperand, "64"},
		{"two warps wait for four", "", "setp.ge.u32 %p, %i, 64; @%p exit; bar.sync 3, 128;", 128, FaultDeadlock, "barrier 3"},
		{"a product half the warp skips", "", "setp.lt.u32 %p, %i, 16; @%p bra S; mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r1,%r2,%r3,%r4},{%r5,%r6},{%r7},{%r1,%r2,%r3,%r4}; S: ret;", 32, FaultDivergence, "mma.sync"},
		{"a product in a warp that is not full", "", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r1,%r2,%r3,%r4},{%r5,%r6},{%r7},{%r1,%r2,%r3,%r4};", 31, FaultDivergence, "mma.sync"},
		{"a shuffle from a lane that ended", "", "setp.ge.u32 %p, %i, 20; @%p ret; shfl.sync.bfly.b32 %r1, %i, 16, 31, -1;", 32, FaultIllegalOperand, "lane"},
		{"a shuffle in one branch with everybody's mask", "", "setp.lt.u32 %p, %i, 7; @%p bra S; shfl.sync.bfly.b32 %r1, %i, 1, 31, -1; S: vote.sync.any.pred %p, %p, -1; st.global.u32 [%o], %r1;", 32, FaultDivergence, "wait at"},
		{"a branch index outside its table", "", "T: .branchtargets A, B; brx.idx %i, T; A: add.u32 %r1, %r1, 1; B: ret;", 32, FaultIllegal, "index 2"},
		{"neighbours that write one word", "", ".shared .b32 s; st.shared.u32 [s], %i;", 32, FaultRace, "write after a write"},
		{"warps that write one word", "", ".shared .b32 s; shr.u32 %r1, %i, 5; st.shared.u32 [s], %r1;", 64, FaultRace, "thread (32,0,0)"},
		{"a lane reads what another wrote", "", ".shared .b32 s[32]; mov.u32 %r1, s; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %i; xor.b32 %r2, %r2, 4; add.u32 %r3, %r1, %r2; ld.shared.u32 %r4, [%r3];", 32, FaultRace, "read after a write"},
		{"a write to what another warp reads", "", ".shared .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %i; bar.sync 0; xor.b32 %r2, %r2, 128; add.u32 %r4, %r1, %r2; ld.shared.u32 %r5, [%r4]; st.shared.u32 [%r3], %r5;", 64, FaultRace, "[%r3]"},
		{"an atomic against a plain write", "", ".shared .b32 s; setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [s], 0; red.shared.add.u32 [s], 1;", 32, FaultRace, "red.shared"},
		{"a named barrier that leaves out a warp", "", ".shared .b32 s[4]; shr.u32 %r1, %i, 5; mov.u32 %r2, s; setp.eq.u32 %p, %i, 64; @%p st.shared.u32 [s+8], 1; setp.ge.u32 %q, %i, 64; @%q bra E; bar.sync 1, 64; setp.eq.u32 %p, %i, 0; @%p ld.shared.u32 %r3, [s+8]; E: bar.sync 0;", 96, FaultRace, "[s+8]"},
	} {
		_, err := execute(t, c.decls, c.body, c.threads, Options{Workers: 1, Checks: CheckAll})
		var f *Fault
		switch {
		case !errors.As(err, &f):
			t.Errorf("%s: error is %v", c.name, err)
		case f.Kind != c.want, !strings.Contains(err.Error(), c.text), f.Line == 0, f.Kernel != "k":
			t.Errorf("%s: found as %v", c.name, err)
		}
		if testing.Verbose() {
			t.Logf("%s: %v", c.name, err)
		}
	}
}

// TestHarmless runs what looks like the faults above and is not.
func TestHarmless(t *testing.T) {
	for name, body := range map[string]string{
		"a barrier some lanes never reach, because they end": "setp.lt.u32 %p, %i, 7; @%p bra S; bar.sync 0; S: add.u32 %r1, %r1, 1;",
		"all write the same value":                           ".shared .b32 s; st.shared.u32 [s], 7;",
		"all read one word":                                  ".shared .b32 s; st.shared.u32 [s], 7; bar.sync 0; ld.shared.u32 %r1, [s]; bar.sync 0; setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [s], 8;",
		"atomics of all on one word":                         ".shared .b32 s; setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [s], 0; bar.sync 0; red.shared.add.u32 [s], 1; bar.sync 0; ld.shared.u32 %r1, [s];",
		"lanes with the warp's barrier":                      ".shared .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %i; bar.warp.sync -1; xor.b32 %r2, %r2, 4; add.u32 %r3, %r1, %r2; ld.shared.u32 %r4, [%r3];",
		"pairs of warps by named barriers":                   ".shared .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %i; bar.sync 1, 64; xor.b32 %r2, %r2, 128; add.u32 %r4, %r1, %r2; ld.shared.u32 %r5, [%r4]; bar.sync 1, 64; st.shared.u32 [%r3], %r5;",
		"neighbouring bytes":                                 ".shared .b8 s[64]; mov.u32 %r1, s; add.u32 %r1, %r1, %i; st.shared.u8 [%r1], %i;",
		"a thread's own word, again":                         ".shared .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %i; ld.shared.u32 %r4, [%r3]; st.shared.u32 [%r3], %r4;",
	} {
		if _, err := execute(t, "", body, 64, Options{Workers: 1, Checks: CheckAll}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpin: a warp that waits for another's store gives it its turn, also across
// blocks that run at the same time.
func TestSpin(t *testing.T) {
	got, err := execute(t, "", `
	.shared .align 4 .b32 flag;
	setp.ge.u32 %p, %i, 32; @%p bra PRODUCE;
SPIN:	ld.volatile.shared.u32 %r1, [flag]; setp.ne.u32 %p, %r1, 5; @%p bra SPIN;
	st.global.u32 [%o], 1; ret;
PRODUCE:	st.volatile.shared.u32 [flag], 5; st.global.u32 [%o], 2;`, 64, Options{Workers: 1})
	if err != nil || got[0] != 1 || got[63] != 2 {
		t.Errorf("%v, %v", got, err)
	}
	k := parse(t, program("", `
	mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 1; @%p bra PRODUCE;
SPIN:	ld.acquire.gpu.global.u32 %r1, [%out]; setp.ne.u32 %p, %r1, 5; @%p bra SPIN; ret;
PRODUCE:	st.release.gpu.global.u32 [%out], 5;`)).Kernel("k")
	d := newDevice()
	out, _ := d.alloc("out", 4)
	if err := try(k, d, Options{Workers: 2}, Config{Grid: grid(2, 1), Block: grid(32, 1)}, pack(out)); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	m := parse(t, program("", "L: bra L;"))
	d := newDevice()
	out, _ := d.alloc("out", 64)
	for _, workers := range []int{1, 2} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, err := m.Kernel("k").Launch(ctx, Config{Grid: grid(100, 1), Block: grid(16, 1)}, pack(out), d.regions, Options{Workers: workers})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d workers: error is %v", workers, err)
		}
	}
}

func TestLaunchErrors(t *testing.T) {
	m := parse(t, strings.Replace(program("", ""), ") {", ") .maxntid 128, 1, 1 {", 1))
	good := Config{Grid: grid(1, 1), Block: grid(32, 1)}
	for _, c := range []struct {
		cfg    Config
		params int
		text   string
	}{
		{Config{Grid: grid(0, 1), Block: grid(1, 1)}, 8, "grid [0 1 1]"},
		{Config{Grid: grid(1, 1), Block: grid(1025, 1)}, 8, "block [1025 1 1]"},
		{Config{Grid: grid(1, 1), Block: [3]int{32, 32, 2}}, 8, "2048 threads"},
		{Config{Grid: grid(1, 1), Block: grid(129, 1)}, 8, "compiled for at most 128"},
		{Config{Grid: grid(1, 1), Block: grid(32, 1), SharedBytes: 1 << 21}, 8, "shared"},
		{Config{Grid: [3]int{1, 65536, 1}, Block: grid(1, 1)}, 8, "grid [1 65536 1]"},
		{good, 4, "4 bytes of parameters; the kernel takes 8"},
	} {
		_, err := m.Kernel("k").Launch(context.Background(), c.cfg, make([]byte, c.params), nil, Options{})
		if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "launch of k") {
			t.Errorf("%v: error is %v, want one with %q", c.cfg, err, c.text)
		}
	}
	if _, err := m.Kernel("k").Launch(context.Background(), good, make([]byte, 8), nil, Options{}); err != nil {
		t.Error(fmt.Errorf("a kernel that touches no memory needs none: %w", err))
	}
}
