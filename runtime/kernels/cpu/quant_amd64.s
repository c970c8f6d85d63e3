//go:build !purego

#include "textflag.h"
#include "transpose_amd64.h"

#define CONST8(name, bits) \
	DATA name<>+0(SB)/4, $bits  \
	DATA name<>+4(SB)/4, $bits  \
	DATA name<>+8(SB)/4, $bits  \
	DATA name<>+12(SB)/4, $bits \
	DATA name<>+16(SB)/4, $bits \
	DATA name<>+20(SB)/4, $bits \
	DATA name<>+24(SB)/4, $bits \
	DATA name<>+28(SB)/4, $bits \
	GLOBL name<>(SB), RODATA|NOPTR, $32

CONST8(magnitude, 0x7fffffff)
CONST8(bytes1, 0x01010101)
CONST8(words1, 0x00010001)
CONST8(top16, 0x46fffe00)      // 32767
CONST8(topInverse16, 0x38000100) // 1/32767
CONST8(top8, 0x42fe0000)       // 127
CONST8(topInverse8, 0x3c010204) // 1/127
CONST8(tiny, 0x0da24260)       // 1e-30

// Where VPERMD takes the parts of a group of bytes from.
DATA order8<>+0(SB)/8, $0x0000000400000000
DATA order8<>+8(SB)/8, $0x0000000500000001
DATA order8<>+16(SB)/8, $0x0000000600000002
DATA order8<>+24(SB)/8, $0x0000000700000003
GLOBL order8<>(SB), RODATA|NOPTR, $32

// Loads the group at SI to Y0..Y3; all lanes of Y4 become the scale (see
// actScale in quant.go) and Y0..Y3 integers of 32 bits. Uses Y5..Y7. Bits of
// magnitudes compare as integers: those of a NaN are the largest.
#define GROUP(top, inverse) \
	VMOVUPS      (SI), Y0                  \
	VMOVUPS      32(SI), Y1                \
	VMOVUPS      64(SI), Y2                \
	VMOVUPS      96(SI), Y3                \
	VPAND        magnitude<>(SB), Y0, Y4   \
	VPAND        magnitude<>(SB), Y1, Y5   \
	VPAND        magnitude<>(SB), Y2, Y6   \
	VPAND        magnitude<>(SB), Y3, Y7   \
	VPMAXUD      Y5, Y4, Y4                \
	VPMAXUD      Y7, Y6, Y6                \
	VPMAXUD      Y6, Y4, Y4                \
	VEXTRACTI128 $1, Y4, X5                \
	VPMAXUD      X5, X4, X4                \
	VPSHUFD      $0x4e, X4, X5             \
	VPMAXUD      X5, X4, X4                \
	VPSHUFD      $0xb1, X4, X5             \
	VPMAXUD      X5, X4, X4                \
	VPBROADCASTD X4, Y4                    \
	VMOVUPS      top<>(SB), Y5             \
	VDIVPS       Y4, Y5, Y5                \
	VCMPPS       $5, tiny<>(SB), Y4, Y6    \ // not less, or NaN
	VANDPS       Y6, Y5, Y5                \
	VMULPS       inverse<>(SB), Y4, Y4     \
	VSUBPS       Y4, Y4, Y6                \ // NaN for an infinity
	VADDPS       Y6, Y4, Y4                \
	VMULPS       Y5, Y0, Y0                \
	VMULPS       Y5, Y1, Y1                \
	VMULPS       Y5, Y2, Y2                \
	VMULPS       Y5, Y3, Y3                \
	VCVTPS2DQ    Y0, Y0                    \
	VCVTPS2DQ    Y1, Y1                    \
	VCVTPS2DQ    Y2, Y2                    \
	VCVTPS2DQ    Y3, Y3                    \
	VPACKSSDW    Y1, Y0, Y0                \
	VPACKSSDW    Y3, Y2, Y2

// func acts16AVX2(dst *byte, x *float32, groups int)
TEXT ·acts16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ groups+16(FP), CX

acts16loop:
	GROUP(top16, topInverse16)
	VPERMQ  $0xd8, Y0, Y0
	VPERMQ  $0xd8, Y2, Y2
	VMOVDQU Y0, (DI)
	VMOVDQU Y2, 32(DI)
	VMOVSS  X4, 64(DI)
	ADDQ    $128, SI
	ADDQ    $68, DI
	DECQ    CX
	JNE     acts16loop
	VZEROUPPER
	RET

// Cuts 8 float32 of a row in two, 16 bits in lanes of 32: the first part to
// high, the rest to low, all ones where there is none.
#define SPLIT(off, high, low) \
	VMOVUPS off(SI), low         \
	ROUND(low, high)             \
	VPAND   Y8, high, high       \
	VSUBPS  high, low, low       \
	VCMPPS  $3, low, low, Y11    \ // not a number
	ROUND(low, low)              \
	VPOR    Y11, low, low        \
	VPSRLD  $16, low, low        \
	VPSRLD  $16, high, high

// Rounds the first 16 bits to the nearest even.
#define ROUND(x, dst) \
	VPSRLD $16, x, Y7    \
	VPAND  Y9, Y7, Y7    \
	VPADDD Y10, Y7, Y7   \
	VPADDD Y7, x, dst

// func splitAVX2(dst *byte, x *float32, groups int)
TEXT ·splitAVX2(SB), NOSPLIT, $0-24
	MOVQ     dst+0(FP), DI
	MOVQ     x+8(FP), SI
	MOVQ     groups+16(FP), CX
	VPCMPEQD Y8, Y8, Y8
	VPSRLD   $31, Y8, Y9       // 1
	VPSRLD   $17, Y8, Y10      // 0x7fff
	VPSLLD   $16, Y8, Y8       // 0xffff0000

splitLoop:
	SPLIT(0, Y0, Y4)
	SPLIT(32, Y1, Y5)
	VPACKUSDW Y1, Y0, Y0
	VPACKUSDW Y5, Y4, Y4
	VPERMQ    $0xd8, Y0, Y0
	VPERMQ    $0xd8, Y4, Y4
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y4, 64(DI)
	SPLIT(64, Y2, Y5)
	SPLIT(96, Y3, Y6)
	VPACKUSDW Y3, Y2, Y2
	VPACKUSDW Y6, Y5, Y5
	VPERMQ    $0xd8, Y2, Y2
	VPERMQ    $0xd8, Y5, Y5
	VMOVDQU   Y2, 32(DI)
	VMOVDQU   Y5, 96(DI)
	ADDQ      $128, SI
	ADDQ      $128, DI
	DECQ      CX
	JNE       splitLoop
	VZEROUPPER
	RET

// func acts8AVX2(dst *byte, x *float32, groups int)
TEXT ·acts8AVX2(SB), NOSPLIT, $0-24
	MOVQ    dst+0(FP), DI
	MOVQ    x+8(FP), SI
	MOVQ    groups+16(FP), CX
	VMOVDQU order8<>(SB), Y8
	VMOVDQU bytes1<>(SB), Y9

acts8loop:
	GROUP(top8, topInverse8)
	VPACKSSWB    Y2, Y0, Y0
	VPERMD       Y0, Y8, Y0
	VMOVDQU      Y0, (DI)
	VMOVSS       X4, 32(DI)
	VPMADDUBSW   Y0, Y9, Y1         // Σ of pairs
	VPMADDWD     words1<>(SB), Y1, Y1
	VEXTRACTI128 $1, Y1, X2
	VPADDD       X2, X1, X1
	VPSHUFD      $0x4e, X1, X2
	VPADDD       X2, X1, X1
	VPSHUFD      $0xb1, X1, X2
	VPADDD       X2, X1, X1
	VCVTDQ2PS    X1, X1
	VXORPS       X2, X2, X2
	VSUBSS       X4, X2, X2
	VMULSS       X1, X2, X2
	VMOVSS       X2, 36(DI)
	ADDQ         $128, SI
	ADDQ         $40, DI
	DECQ         CX
	JNE          acts8loop
	VZEROUPPER
	RET

// One k at byte offset at: its weights, the candidate's integers, and their
// part of the sums.
#define SUMS(at, sq, sqq, swq) \
	VMOVUPS     at(SI), Y11        \
	VMOVAPS     Y11, Y10           \
	VFMADD213PS Y1, Y0, Y10        \
	VROUNDPS    $0, Y10, Y10       \
	VMAXPS      Y2, Y10, Y10       \
	VMINPS      Y3, Y10, Y10       \
	VADDPS      Y10, sq, sq        \
	VFMADD231PS Y10, Y10, sqq      \
	VFMADD231PS Y10, Y11, swq

// func fitAVX2(a *fitArgs)
TEXT ·fitAVX2(SB), NOSPLIT, $0-8
	MOVQ         a+0(FP), AX
	VBROADCASTSS 2048(AX), Y2
	VBROADCASTSS 2052(AX), Y3
	MOVQ         2056(AX), DX
	MOVQ         AX, DI            // the candidate's place

fitcandidate:
	VMOVUPS 2064(DI), Y0
	VMOVUPS 2192(DI), Y1
	VXORPS  Y4, Y4, Y4
	VXORPS  Y5, Y5, Y5
	VXORPS  Y6, Y6, Y6
	VXORPS  Y7, Y7, Y7
	VXORPS  Y8, Y8, Y8
	VXORPS  Y9, Y9, Y9
	MOVQ    AX, SI
	MOVQ    $8, CX

sumsloop:
	SUMS(0, Y4, Y5, Y6)
	SUMS(32, Y7, Y8, Y9)
	SUMS(64, Y4, Y5, Y6)
	SUMS(96, Y7, Y8, Y9)
	ADDQ    $128, SI
	DECQ    CX
	JNE     sumsloop
	VADDPS  Y7, Y4, Y4
	VADDPS  Y8, Y5, Y5
	VADDPS  Y9, Y6, Y6
	VMOVUPS Y4, 2320(DI)
	VMOVUPS Y5, 2448(DI)
	VMOVUPS Y6, 2576(DI)
	ADDQ    $32, DI
	DECQ    DX
	JNE     fitcandidate
	VZEROUPPER
	RET

// The integers of the k at byte offset at; VCVTPS2DQ rounds to the nearest even.
#define WHOLE(at, r) \
	VMOVUPS     at(SI), r        \
	VFMADD213PS Y1, Y0, r        \
	VMAXPS      Y2, r, r         \
	VMINPS      Y3, r, r         \
	VCVTPS2DQ   r, r             \
	VMOVDQU     r, 1024+at(SI)

// func wholeAVX2(a *fitArgs)
TEXT ·wholeAVX2(SB), NOSPLIT, $0-8
	MOVQ         a+0(FP), SI
	VBROADCASTSS 2048(SI), Y2
	VBROADCASTSS 2052(SI), Y3
	VMOVUPS      2064(SI), Y0
	VMOVUPS      2192(SI), Y1
	MOVQ         $8, CX

wholeloop:
	WHOLE(0, Y4)
	WHOLE(32, Y5)
	WHOLE(64, Y6)
	WHOLE(96, Y7)
	ADDQ $128, SI
	DECQ CX
	JNE  wholeloop
	VZEROUPPER
	RET

// Columns at..at+3 of 8 rows become the block's k, and part of its lowest,
// highest and sums in Y12..Y14.
#define COLUMN(off, r) \
	VMOVUPS r, off(DI)       \
	VMINPS  r, Y12, Y12      \
	VMAXPS  r, Y13, Y13      \
	VADDPS  r, Y14, Y14

// func blockAVX2(a *fitArgs, src *float32, ld int)
TEXT ·blockAVX2(SB), NOSPLIT, $0-24
	MOVQ   a+0(FP), AX
	MOVQ   AX, DI
	MOVQ   src+8(FP), SI
	MOVQ   ld+16(FP), R9
	SHLQ   $2, R9
	LEAQ   (SI)(R9*2), R10
	ADDQ   R9, R10          // row 3
	LEAQ   (SI)(R9*4), R11  // row 4
	LEAQ   (R10)(R9*4), R12 // row 7
	VXORPS Y12, Y12, Y12
	VXORPS Y13, Y13, Y13
	VXORPS Y14, Y14, Y14
	MOVQ   $8, CX

blockloop:
	VMOVUPS     (SI), X0
	VINSERTF128 $1, (R11), Y0, Y0
	VMOVUPS     (SI)(R9*1), X1
	VINSERTF128 $1, (R11)(R9*1), Y1, Y1
	VMOVUPS     (SI)(R9*2), X2
	VINSERTF128 $1, (R11)(R9*2), Y2, Y2
	VMOVUPS     (R10), X3
	VINSERTF128 $1, (R12), Y3, Y3
	VUNPCKLPS   Y1, Y0, Y4
	VUNPCKHPS   Y1, Y0, Y5
	VUNPCKLPS   Y3, Y2, Y6
	VUNPCKHPS   Y3, Y2, Y7
	VSHUFPS     $0x44, Y6, Y4, Y0
	VSHUFPS     $0xee, Y6, Y4, Y1
	VSHUFPS     $0x44, Y7, Y5, Y2
	VSHUFPS     $0xee, Y7, Y5, Y3
	COLUMN(0, Y0)
	COLUMN(32, Y1)
	COLUMN(64, Y2)
	COLUMN(96, Y3)
	ADDQ        $16, SI
	ADDQ        $16, R10
	ADDQ        $16, R11
	ADDQ        $16, R12
	ADDQ        $128, DI
	DECQ        CX
	JNE         blockloop
	VMOVUPS     Y12, 2704(AX)
	VMOVUPS     Y13, 2736(AX)
	VMOVUPS     Y14, 2768(AX)
	VZEROUPPER
	RET

CONST8(upper16, 0xffff0000)

// Two k of 8 rows, at off, out of their words.
#define WORD(off, r) \
	VPSLLD $16, r, Y4     \
	COLUMN(off, Y4)       \
	VPAND  Y15, r, r      \
	COLUMN(off+32, r)

// func block16AVX2(a *fitArgs, src *byte, ld int)
TEXT ·block16AVX2(SB), NOSPLIT, $0-24
	MOVQ    a+0(FP), BX
	MOVQ    BX, DI
	MOVQ    src+8(FP), AX
	MOVQ    ld+16(FP), R9
	ROWS
	VXORPS  Y12, Y12, Y12
	VXORPS  Y13, Y13, Y13
	VXORPS  Y14, Y14, Y14
	VMOVUPS upper16<>(SB), Y15
	MOVQ    $4, CX

block16loop:
	QUAD
	WORD(0, Y0)
	WORD(64, Y1)
	WORD(128, Y2)
	WORD(192, Y3)
	ADDQ    $256, DI
	DECQ    CX
	JNE     block16loop
	VMOVUPS Y12, 2704(BX)
	VMOVUPS Y13, 2736(BX)
	VMOVUPS Y14, 2768(BX)
	VZEROUPPER
	RET

CONST8(low8, 0x000000ff)

// Two k of 8 outputs, at byte offset at of the integers, as bytes side by side.
#define PAIR(at, r, t) \
	VMOVDQU at(SI), r               \
	VPAND   low8<>(SB), r, r        \
	VMOVDQU at+32(SI), t            \
	VPAND   low8<>(SB), t, t        \
	VPSLLD  $8, t, t                \
	VPOR    t, r, r

// func putQ8AVX2(dst *byte, q *[32][8]int32)
TEXT ·putQ8AVX2(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ $8, CX

putq8loop:
	PAIR(0, Y0, Y1)
	PAIR(64, Y2, Y3)
	VPACKUSDW    Y2, Y0, Y0
	VPERMQ       $0xd8, Y0, Y0
	VMOVDQU      X0, (DI)
	VEXTRACTI128 $1, Y0, 32(DI)
	ADDQ         $128, SI
	ADDQ         $64, DI
	DECQ         CX
	JNE          putq8loop
	VZEROUPPER
	RET

// The k at byte offset at and the one 4 further, in byte i of each output's
// word.
#define NIBBLES(at, i) \
	VMOVDQU at+128(SI), Y1    \
	VPSLLD  $4, Y1, Y1        \
	VPOR    at(SI), Y1, Y1    \
	VPSLLD  $(8*i), Y1, Y1    \
	VPOR    Y1, Y0, Y0

// func putQ4AVX2(dst *byte, q *[32][8]int32)
TEXT ·putQ4AVX2(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ $4, CX

putq4loop:
	VPXOR   Y0, Y0, Y0
	NIBBLES(0, 0)
	NIBBLES(32, 1)
	NIBBLES(64, 2)
	NIBBLES(96, 3)
	VMOVDQU Y0, (DI)
	ADDQ    $256, SI
	ADDQ    $64, DI
	DECQ    CX
	JNE     putq4loop
	VZEROUPPER
	RET

CONST8(one, 0x3f800000)
CONST8(cut, 0x3f70a3d7)  // 0.94
CONST8(fifteen, 0x41700000)
CONST8(nan, 0x7fc00000)
CONST8(largest, 0x7f7fffff)
CONST8(groupOf, 0x42000000)  // 32
CONST8(perGroup, 0x3d000000) // 1/32

// The candidate at offset at, with shares of both ends, Y2 and Y3.
#define RANGE(at, cutLow, cutHigh) \
	VMULPS  cutLow<>(SB), Y2, Y4      \
	VMULPS  cutHigh<>(SB), Y3, Y5     \
	VSUBPS  Y4, Y5, Y5                \
	VMOVUPS fifteen<>(SB), Y6         \
	VDIVPS  Y5, Y6, Y6                \
	VCMPPS  $2, largest<>(SB), Y6, Y7 \ // finite and a number, or 0
	VANDPS  Y7, Y6, Y6                \
	VMOVUPS Y6, 2064+at(AX)           \
	VMULPS  Y6, Y4, Y7                \
	VSUBPS  Y7, Y8, Y7                \
	VMOVUPS Y7, 2192+at(AX)

// func rangesQ4AVX2(a *fitArgs)
TEXT ·rangesQ4AVX2(SB), NOSPLIT, $0-8
	MOVQ    a+0(FP), AX
	VMOVUPS 2704(AX), Y2
	VMOVUPS 2736(AX), Y3
	VXORPS  Y8, Y8, Y8
	RANGE(0, one, one)
	RANGE(32, one, cut)
	RANGE(64, cut, one)
	VZEROUPPER
	RET

// func bestQ8AVX2(a *fitArgs)
TEXT ·bestQ8AVX2(SB), NOSPLIT, $0-8
	MOVQ    a+0(FP), AX
	MOVQ    2056(AX), CX
	MOVQ    AX, DI
	VMOVUPS 2768(AX), Y0
	VSUBPS  Y0, Y0, Y0
	VCMPPS  $3, Y0, Y0, Y0  // not finite
	VXORPS  Y1, Y1, Y1      // step
	VXORPS  Y2, Y2, Y2      // best

bestq8loop:
	VMOVUPS   2576(DI), Y3
	VDIVPS    2448(DI), Y3, Y4
	VMULPS    Y4, Y3, Y5
	VCMPPS    $14, Y2, Y5, Y6 // greater
	VBLENDVPS Y6, Y4, Y1, Y1
	VBLENDVPS Y6, Y5, Y2, Y2
	ADDQ      $32, DI
	DECQ      CX
	JNE       bestq8loop
	VMOVUPS   nan<>(SB), Y3
	VBLENDVPS Y0, Y3, Y1, Y1
	VCVTPS2PH $0, Y1, X1
	VMOVUPS   X1, 2896(AX)
	VCVTPH2PS X1, Y1
	VMOVUPS   one<>(SB), Y3
	VDIVPS    Y1, Y3, Y3
	VMOVUPS   largest<>(SB), Y2
	VCMPPS    $2, Y2, Y3, Y4 // finite and a number, or 0
	VANDPS    Y4, Y3, Y3
	VMOVUPS   Y3, 2064(AX)
	VXORPS    Y4, Y4, Y4
	VMOVUPS   Y4, 2192(AX)
	VZEROUPPER
	RET

// func bestQ4AVX2(a *fitArgs)
TEXT ·bestQ4AVX2(SB), NOSPLIT, $0-8
	MOVQ    a+0(FP), AX
	MOVQ    2056(AX), CX
	MOVQ    AX, DI
	VMOVUPS 2768(AX), Y0        // sum
	VMOVUPS 2704(AX), Y2        // low
	VMOVUPS 2736(AX), Y1
	VSUBPS  Y2, Y1, Y1
	VDIVPS  fifteen<>(SB), Y1, Y1 // step
	VXORPS  Y3, Y3, Y3          // best
	VXORPS  Y15, Y15, Y15

bestq4loop:
	VMOVUPS   2320(DI), Y4       // sq
	VMOVUPS   2448(DI), Y5       // sqq
	VMOVUPS   2576(DI), Y6       // swq
	VDIVPS    Y5, Y6, Y7         // step with 0 as the lowest value
	VMULPS    Y7, Y6, Y8         // what it takes from the error
	VMULPS    groupOf<>(SB), Y6, Y9
	VMULPS    Y0, Y4, Y10
	VSUBPS    Y10, Y9, Y9        // num
	VMULPS    groupOf<>(SB), Y5, Y10
	VMULPS    Y4, Y4, Y11
	VSUBPS    Y11, Y10, Y10
	VDIVPS    Y10, Y9, Y10       // step of least squares
	VMULPS    Y4, Y10, Y11
	VSUBPS    Y11, Y0, Y11
	VMULPS    perGroup<>(SB), Y11, Y11 // its lowest value
	VMULPS    Y10, Y9, Y12
	VMULPS    Y0, Y0, Y13
	VADDPS    Y13, Y12, Y12
	VMULPS    perGroup<>(SB), Y12, Y12
	VCMPPS    $1, Y15, Y11, Y13  // below 0
	VBLENDVPS Y13, Y10, Y7, Y7
	VBLENDVPS Y13, Y12, Y8, Y8
	VANDPS    Y13, Y11, Y11
	VCMPPS    $14, Y3, Y8, Y12
	VCMPPS    $14, Y15, Y7, Y13
	VANDPS    Y13, Y12, Y12
	VBLENDVPS Y12, Y7, Y1, Y1
	VBLENDVPS Y12, Y11, Y2, Y2
	VBLENDVPS Y12, Y8, Y3, Y3
	ADDQ      $32, DI
	DECQ      CX
	JNE       bestq4loop
	VSUBPS    Y0, Y0, Y0
	VADDPS    Y0, Y1, Y1
	VMOVUPS   Y1, 2800(AX)
	VMOVUPS   Y2, 2832(AX)
	VZEROUPPER
	RET

// What the candidates of Q8 make of the largest weight.
DATA triesQ8<>+0(SB)/4, $0x42fe0000 // 127
DATA triesQ8<>+4(SB)/4, $0x42fc0000 // 126
DATA triesQ8<>+8(SB)/4, $0x42fa0000 // 125
DATA triesQ8<>+12(SB)/4, $0x42f80000 // 124
GLOBL triesQ8<>(SB), RODATA|NOPTR, $16

// One k at byte offset at with the candidates whose inverses are Y0 and Y1.
// Nothing is clamped: no weight is above the largest.
#define TRY(at, sqq, swq, sqq1, swq1) \
	VMOVUPS     at(SI), Y12      \
	VMULPS      Y12, Y0, Y13     \
	VMULPS      Y12, Y1, Y14     \
	VROUNDPS    $0, Y13, Y13     \
	VROUNDPS    $0, Y14, Y14     \
	VFMADD231PS Y13, Y13, sqq    \
	VFMADD231PS Y13, Y12, swq    \
	VFMADD231PS Y14, Y14, sqq1   \
	VFMADD231PS Y14, Y12, swq1

// func triesQ8AVX2(a *fitArgs)
TEXT ·triesQ8AVX2(SB), NOSPLIT, $0-8
	MOVQ    a+0(FP), AX
	VXORPS  Y2, Y2, Y2
	VSUBPS  2704(AX), Y2, Y2
	VMAXPS  2736(AX), Y2, Y2 // the largest magnitude
	VANDPS  magnitude<>(SB), Y2, Y2 // of −0 too
	VMOVUPS one<>(SB), Y3
	VDIVPS  Y2, Y3, Y3
	VMOVUPS largest<>(SB), Y2
	VCMPPS  $2, Y2, Y3, Y4   // finite and a number, or 0
	VANDPS  Y4, Y3, Y3
	LEAQ    triesQ8<>(SB), BX
	MOVQ    AX, DI           // the candidates' place
	MOVQ    $2, DX

triesq8pair:
	VBROADCASTSS (BX), Y0
	VBROADCASTSS 4(BX), Y1
	VMULPS       Y3, Y0, Y0
	VMULPS       Y3, Y1, Y1
	VMINPS       Y2, Y0, Y0
	VMINPS       Y2, Y1, Y1
	VMOVUPS      Y0, 2064(DI)
	VMOVUPS      Y1, 2096(DI)
	VXORPS       Y4, Y4, Y4
	VXORPS       Y5, Y5, Y5
	VXORPS       Y6, Y6, Y6
	VXORPS       Y7, Y7, Y7
	VXORPS       Y8, Y8, Y8
	VXORPS       Y9, Y9, Y9
	VXORPS       Y10, Y10, Y10
	VXORPS       Y11, Y11, Y11
	MOVQ         AX, SI
	MOVQ         $16, CX

triesq8loop:
	TRY(0, Y4, Y5, Y6, Y7)
	TRY(32, Y8, Y9, Y10, Y11)
	ADDQ    $64, SI
	DECQ    CX
	JNE     triesq8loop
	VADDPS  Y8, Y4, Y4
	VADDPS  Y9, Y5, Y5
	VADDPS  Y10, Y6, Y6
	VADDPS  Y11, Y7, Y7
	VMOVUPS Y4, 2448(DI)
	VMOVUPS Y5, 2576(DI)
	VMOVUPS Y6, 2480(DI)
	VMOVUPS Y7, 2608(DI)
	ADDQ    $8, BX
	ADDQ    $64, DI
	DECQ    DX
	JNE     triesq8pair
	VZEROUPPER
	RET

CONST8(topScale, 0x427c0000)  // 63
CONST8(topOffset, 0x447fc000) // 1023

// func wholeQ4AVX2(a *fitArgs)
TEXT ·wholeQ4AVX2(SB), NOSPLIT, $0-8
	MOVQ     a+0(FP), AX
	VXORPS   Y15, Y15, Y15
	VMOVUPS  one<>(SB), Y1
	VDIVPS   2864(AX), Y1, Y1
	VCMPPS   $2, largest<>(SB), Y1, Y2 // finite and a number, or 0
	VANDPS   Y2, Y1, Y1                // the unit's inverse
	VMOVUPS  2800(AX), Y4              // step
	VCMPPS   $4, Y15, Y1, Y5           // not 0
	VCMPPS   $4, Y15, Y4, Y6
	VANDPS   Y6, Y5, Y5                // which outputs have a step
	VMULPS   Y1, Y4, Y7
	VROUNDPS $0, Y7, Y7
	VMAXPS   one<>(SB), Y7, Y7
	VMINPS   topScale<>(SB), Y7, Y7    // in units
	VMOVUPS  2768(AX), Y8
	VMULPS   perGroup<>(SB), Y8, Y8    // mean
	VSUBPS   2832(AX), Y8, Y6
	VDIVPS   Y4, Y6, Y6
	VMULPS   Y7, Y6, Y6
	VMULPS   Y1, Y8, Y8
	VSUBPS   Y8, Y6, Y6
	VROUNDPS $0, Y6, Y6
	VMAXPS   Y15, Y6, Y6
	VMINPS   topOffset<>(SB), Y6, Y6   // the offset
	VDIVPS   Y7, Y1, Y8
	VDIVPS   Y7, Y6, Y9
	VANDPS   Y5, Y8, Y8
	VANDPS   Y5, Y9, Y9
	VANDPS   Y5, Y7, Y7
	VANDPS   Y5, Y6, Y6
	VMOVUPS  Y8, 2064(AX)
	VMOVUPS  Y9, 2192(AX)
	VCVTPS2DQ    Y7, Y7
	VCVTPS2DQ    Y6, Y6
	VPSLLD       $6, Y6, Y6
	VPOR         Y6, Y7, Y7
	VEXTRACTI128 $1, Y7, X6
	VPACKUSDW    X6, X7, X7
	VMOVDQU      X7, 2896(AX)
	VZEROUPPER
	RET
