package ptx

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// merged is the pattern of a last block that merges what the others wrote:
// every thread writes a word, thread 0 counts its block in, and the threads of
// the block that was last read all words.
func merged(before, release, atom, acquire, behind string) string {
	return `
	.shared .align 4 .b32 turn[1];
	mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %i; mad.wide.u32 %A, %r2, 4, %out;
	st.global.u32 [%A], %i;
	` + before + `
	setp.ne.u32 %p, %i, 0; @%p bra W;
	` + release + atom + acquire + `
	st.shared.u32 [turn], %r3;
W:	bar.sync 0;
	ld.shared.u32 %r3, [turn];
	setp.ne.u32 %p, %r3, 2; @%p bra E;
	` + behind + `
	xor.b32 %r4, %i, 63; mad.wide.u32 %B, %r4, 4, %out;
	ld.global.u32 %r5, [%B]; ld.global.u32 %r6, [%B+256]; ld.global.u32 %r7, [%B+512];
E:`
}

func TestLastBlock(t *testing.T) {
	const sync, fence, atom = "bar.sync 0;", "fence.acq_rel.gpu;", "atom.global.add.u32 %r3, [%out+4096], 1;"
	for _, c := range []struct {
		name, body string
		ok         bool
	}{
		{"in order", merged(sync, fence, atom, fence, ""), true},
		{"membar", merged(sync, "membar.gl;", atom, "membar.sys;", ""), true},
		{"fences of the system", merged(sync, "fence.sc.sys;", atom, "fence.acq_rel.sys;", ""), true},
		{"one-way fences", merged(sync, "fence.release.gpu;", atom, "fence.acquire.gpu;", ""), true},
		{"one-way fences, swapped", merged(sync, "fence.acquire.gpu;", atom, "fence.release.gpu;", ""), false},
		{"a qualified atom", merged(sync, "", "atom.acq_rel.gpu.global.add.u32 %r3, [%out+4096], 1;", "", ""), true},
		{"a releasing atom, a fence", merged(sync, "", "atom.release.gpu.global.add.u32 %r3, [%out+4096], 1;", fence, ""), true},
		{"an acquiring atom, a fence", merged(sync, fence, "atom.acquire.gpu.global.add.u32 %r3, [%out+4096], 1;", "", ""), true},
		{"an atom that only releases", merged(sync, "", "atom.release.gpu.global.add.u32 %r3, [%out+4096], 1;", "", ""), false},
		{"an atom that only acquires", merged(sync, "", "atom.acquire.gpu.global.add.u32 %r3, [%out+4096], 1;", "", ""), false},
		{"a qualified atom of the block", merged(sync, "", "atom.acq_rel.cta.global.add.u32 %r3, [%out+4096], 1;", "", ""), false},
		{"fences, an atom of the block", merged(sync, fence, "atom.relaxed.cta.global.add.u32 %r3, [%out+4096], 1;", fence, ""), false},
		{"no barrier", merged("", fence, atom, fence, ""), false},
		{"a barrier of each warp", merged("bar.warp.sync -1;", fence, atom, fence, ""), false},
		{"no release", merged(sync, "", atom, fence, ""), false},
		{"release of the block", merged(sync, "fence.acq_rel.cta;", atom, fence, ""), false},
		{"release of the cluster", merged(sync, "fence.acq_rel.cluster;", atom, fence, ""), false},
		{"membar of the block", merged(sync, "membar.cta;", atom, fence, ""), false},
		{"atom before the release", merged(sync, "", atom+fence, fence, ""), false},
		{"release before the barrier", merged(fence+sync, "", atom, fence, ""), false},
		{"no acquire", merged(sync, fence, atom, "", ""), false},
		{"acquire of the block", merged(sync, fence, atom, "fence.acq_rel.cta;", ""), false},
		// Only thread 0 has read the counter: a fence of the others is no acquire
		// pattern, and its own comes after the barrier that could hand it on.
		{"acquire behind the barrier", merged(sync, fence, atom, "", fence), false},
		{"acquire behind the barrier, another barrier", merged(sync, fence, atom, "", fence+sync), true},
	} {
		for i := range 8 {
			d := newDevice()
			buf, _ := d.alloc("buf", 8192)
			err := try(parse(t, program("", c.body)).Kernel("k"), d, Options{Workers: 1 + i%4, Checks: CheckOrder | CheckShared},
				Config{Grid: grid(3, 1), Block: grid(64, 1)}, pack(buf))
			wantRace(t, c.name, err, c.ok)
		}
	}
}

func wantRace(t *testing.T, name string, err error, ok bool) {
	t.Helper()
	var f *Fault
	switch {
	case ok && err != nil:
		t.Errorf("%s: %v", name, err)
	case !ok && (!errors.As(err, &f) || f.Kind != FaultRace || f.Space != "global" || f.OtherBlock == f.Block || f.Line == 0 || f.OtherLine == 0):
		t.Errorf("%s: found as %v", name, err)
	}
}

// roles is a kernel whose blocks do different things, in turn. %q is true in
// thread 0; X is a word, F and G are flags.
func roles(backwards bool, blocks ...string) string {
	b := "setp.eq.u32 %q, %i, 0; mov.u32 %r1, %ctaid.x;\n"
	if backwards {
		b += fmt.Sprintf("sub.u32 %%r1, %d, %%r1;\n", len(blocks)-1)
	}
	for i, body := range blocks {
		b += fmt.Sprintf("setp.ne.u32 %%p, %%r1, %d; @%%p bra L%d;\n%s\nbra END;\nL%d:\n", i, i, strings.ReplaceAll(body, ";", ";\n"), i)
	}
	return strings.NewReplacer("[X", "[%out", "[F]", "[%out+1024]", "[G]", "[%out+2048]").Replace(b + "END:")
}

func TestMessages(t *testing.T) {
	const (
		fence = "fence.acq_rel.gpu;"
		sync  = "bar.sync 0;"
		write = "@%q st.global.u32 [X], 7;"
		read  = "@%q ld.global.u32 %r5, [X];"
		send  = "@%q atom.global.exch.b32 %r2, [F], 1;"
		take  = "@%q atom.global.or.b32 %r3, [F], 0;"
		last  = "setp.eq.u32 %u, %i, 63;"
	)
	for _, c := range []struct {
		name   string
		blocks []string
		ok     bool
	}{
		{"message", []string{write + fence + send, take + fence + read}, true},
		{"message without a release", []string{write + send, take + fence + read}, false},
		{"message without an acquire", []string{write + fence + send, take + read}, false},
		{"message by another flag", []string{write + fence + send, "@%q atom.global.or.b32 %r3, [G], 0;" + fence + read}, false},
		{"release and acquire", []string{write + "@%q st.release.gpu.global.u32 [F], 1;", "@%q ld.acquire.gpu.global.u32 %r3, [F];" + read}, true},
		{"release and acquire of the block", []string{write + "@%q st.release.cta.global.u32 [F], 1;", "@%q ld.acquire.cta.global.u32 %r3, [F];" + read}, false},
		{"relaxed", []string{write + "@%q st.relaxed.gpu.global.u32 [F], 1;", "@%q ld.relaxed.gpu.global.u32 %r3, [F];" + read}, false},
		{"relaxed with fences", []string{write + fence + "@%q st.relaxed.gpu.global.u32 [F], 1;", "@%q ld.relaxed.gpu.global.u32 %r3, [F];" + fence + read}, true},
		{"volatile with fences", []string{write + fence + "@%q st.volatile.global.u32 [F], 1;", "@%q ld.volatile.global.u32 %r3, [F];" + fence + read}, true},
		{"plain flag", []string{write + fence + "@%q st.global.u32 [F], 1;", take + fence + read}, false},
		{"plain flag read", []string{write + fence + send, "@%q ld.global.u32 %r3, [F];" + fence + read}, false},
		{"a release, then another store", []string{write + "@%q st.release.gpu.global.u32 [F], 1;@%q st.relaxed.gpu.global.u32 [F], 2;", take + fence + read}, true},
		{"through another's atom", []string{write + fence + send, "@%q red.global.add.u32 [F], 1;", take + fence + read}, true},
		{"over another's store", []string{write + fence + send, "@%q st.relaxed.gpu.global.u32 [F], 2;", take + fence + read}, false},
		{"through a third block", []string{write + fence + send, take + fence + "@%q red.global.add.u32 [G], 1;", "@%q atom.global.or.b32 %r3, [G], 0;" + fence + read}, true},
		{"through a third block without its fence", []string{write + fence + send, take + "@%q red.global.add.u32 [G], 1;", "@%q atom.global.or.b32 %r3, [G], 0;" + fence + read}, false},
		{"through a third block with its fence first", []string{write + fence + send, fence + take + "@%q red.global.add.u32 [G], 1;", "@%q atom.global.or.b32 %r3, [G], 0;" + fence + read}, false},
		{"a red acquires nothing", []string{write + fence + send, "@%q red.global.or.b32 [F], 0;" + fence + read}, false},
		{"a red releases", []string{write + fence + "@%q red.global.or.b32 [F], 1;", take + fence + read}, true},
		{"a failed exchange releases nothing", []string{write + fence + "@%q atom.global.cas.b32 %r2, [F], 5, 6;", take + fence + read}, false},
		{"an exchange releases", []string{write + fence + "@%q atom.global.cas.b32 %r2, [F], 0, 6;", take + fence + read}, true},
		{"a failed exchange acquires", []string{write + fence + send, "@%q atom.global.cas.b32 %r2, [F], 5, 6;" + fence + read}, true},
		{"through barriers", []string{last + "@%u st.global.u32 [X], 7;" + sync + fence + send, take + fence + sync + last + "@%u ld.global.u32 %r5, [X];"}, true},
		{"of a thread without a barrier", []string{last + "@%u st.global.u32 [X], 7;" + fence + send, take + fence + sync + last + "@%u ld.global.u32 %r5, [X];"}, false},
		{"to a thread without a barrier", []string{last + "@%u st.global.u32 [X], 7;" + sync + fence + send, take + fence + last + "@%u ld.global.u32 %r5, [X];"}, false},
		{"of a lane without a barrier", []string{"setp.eq.u32 %u, %i, 1; @%u st.global.u32 [X], 7;" + fence + send, take + fence + read}, false},
		{"through warp barriers", []string{"setp.eq.u32 %u, %i, 1; @%u st.global.u32 [X], 7; bar.warp.sync -1;" + fence + send, take + fence + "bar.warp.sync -1; setp.eq.u32 %u, %i, 31; @%u ld.global.u32 %r5, [X];"}, true},
		{"to a warp that was not at the barrier", []string{write + fence + send, take + fence + "setp.lt.u32 %u, %i, 32; @%u bar.sync 1, 32; @!%u ld.global.u32 %r5, [X];"}, false},
		{"to a warp that was at the barrier", []string{write + fence + send, take + fence + "bar.sync 1, 64; setp.lt.u32 %u, %i, 32; @!%u ld.global.u32 %r5, [X];"}, true},
		{"written after it was released", []string{fence + write + send, take + fence + read}, false},
		{"written again after it was released", []string{write + fence + write + send, take + fence + read}, false},
		{"read, then written", []string{read + send, take + write}, false},
		{"read, then written in order", []string{read + fence + send, take + fence + write}, true},
		{"written twice", []string{write + send, write}, false},
		{"written twice in order", []string{write + fence + send, take + fence + write}, true},
		{"part of a word", []string{write + send, take + "@%q st.global.u8 [X+3], 1;"}, false},
		{"a neighbour", []string{write + send, take + "@%q st.global.u8 [X+4], 1;"}, true},
		{"a wide read of a part", []string{write + send, take + "@%q ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [X];"}, false},
		{"a part of a wide write", []string{"@%q st.global.v2.u32 [X+8], {%r2, %r3};" + send, take + "@%q ld.global.u16 %h1, [X+14];"}, false},
		{"two readers, the first forgotten", []string{read + fence + send, read + "@%q red.global.add.u32 [G], 1;", take + fence + write}, false},
		{"a counter, put back by who counted", []string{"@%q atom.global.add.u32 %r2, [F], 1;", "@%q atom.global.add.u32 %r2, [F], 1; @%q st.global.u32 [F], 0;"}, true},
		{"a counter, put back by another", []string{"@%q atom.global.add.u32 %r2, [F], 1;", "@%q st.global.u32 [F], 0;"}, false},
		{"counting", []string{"red.global.add.u32 [F], 1;", "red.global.add.u32 [F], 1;"}, true},
		{"a shared counter", []string{write + ".shared .align 4 .b32 s[1]; mov.u64 %A, s; cvta.shared.u64 %A, %A; @%q st.u32 [%A], 0;" + sync + "red.add.u32 [%A], 1;", "@%q ld.global.u32 %r2, [X+4];"}, true},
	} {
		// A wrong order shows whichever block comes first.
		for backwards := range 2 {
			if c.ok && backwards == 1 {
				continue
			}
			d := newDevice()
			buf, _ := d.alloc("buf", 8192)
			m, err := Parse(program("", roles(backwards == 1, c.blocks...)))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			err = try(m.Kernel("k"), d, Options{Workers: 1, Checks: CheckOrder}, Config{Grid: grid(len(c.blocks), 1), Block: grid(64, 1)}, pack(buf))
			wantRace(t, c.name, err, c.ok)
		}
	}
}

// Blocks that run at once: who waits for a flag finds all that it releases.
func TestSpinForBlock(t *testing.T) {
	for _, flag := range []string{
		"st.release.gpu.global.u32 [F], 1;", "fence.acq_rel.gpu; st.volatile.global.u32 [F], 1;", "fence.acq_rel.gpu; red.global.or.b32 [F], 1;",
	} {
		k := parse(t, program("", roles(false,
			"@!%q bra END; mov.u32 %r4, 0; "+
				"WRITE: add.u32 %r4, %r4, 1; st.global.u32 [X], %r4; setp.lt.u32 %u, %r4, 300; @%u bra WRITE;"+flag,
			"@!%q bra END; SPIN: ld.acquire.gpu.global.u32 %r3, [F]; setp.eq.u32 %u, %r3, 0; @%u bra SPIN; ld.global.u32 %r5, [X]; st.global.u32 [X+4], %r5;",
		))).Kernel("k")
		for range 20 {
			d := newDevice()
			buf, _ := d.alloc("buf", 8192)
			if err := try(k, d, Options{Workers: 2, Checks: CheckAll}, Config{Grid: grid(2, 1), Block: grid(64, 1)}, pack(buf)); err != nil {
				t.Fatal(err)
			}
			if got := get[uint32](t, d, buf, 2); got[0] != 300 || got[1] != 300 {
				t.Fatalf("%s: %v", flag, got)
			}
		}
	}
}

// Blocks that cannot order anything are looked at when asked for.
func TestBlocksApart(t *testing.T) {
	for _, c := range []struct {
		name, body string
		checks     Checks
		ok         bool
	}{
		{"same words", "st.global.u32 [%o], %i;", CheckBlocks, false},
		{"same words, not asked for", "st.global.u32 [%o], %i;", CheckAll, true},
		{"words of their own", "mov.u32 %r1, %ctaid.x; mad.wide.u32 %A, %r1, 128, %o; st.global.u32 [%A], %i; ld.global.u32 %r2, [%out+2048];", CheckBlocks, true},
		{"read by one, written by another", "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 0; @%p ld.global.u32 %r2, [%o]; @!%p st.global.u32 [%o], %i;", CheckBlocks, false},
	} {
		d := newDevice()
		buf, _ := d.alloc("buf", 8192)
		err := try(parse(t, program("", c.body)).Kernel("k"), d, Options{Workers: 1, Checks: c.checks}, Config{Grid: grid(2, 1), Block: grid(32, 1)}, pack(buf))
		wantRace(t, c.name, err, c.ok)
	}
}

// What one reads in a report.
func TestOrderReport(t *testing.T) {
	d := newDevice()
	buf, _ := d.alloc("buf", 8192)
	k := parse(t, program("", roles(false, "@%q st.global.u32 [X], 7; @%q red.global.add.u32 [F], 1;", "setp.eq.u32 %u, %i, 5; @%u ld.global.u32 %r5, [X];"))).Kernel("k")
	err := try(k, d, Options{Workers: 1, Checks: CheckAll}, Config{Grid: grid(2, 1), Block: grid(64, 1)}, pack(buf))
	for _, part := range []string{
		"kernel k: data race global:0x7f0000000", "a read, and a write in another block that nothing orders before it",
		"block (1,0,0) thread (5,0,0), PTX line", "ld.global.u32 %r5", "against block (0,0,0) thread (0,0,0), PTX line", "st.global.u32",
	} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("the report lacks %q: %v", part, err)
		}
	}
}
