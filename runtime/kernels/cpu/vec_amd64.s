//go:build !purego

#include "textflag.h"

// n is a multiple of 8 everywhere; see vecSet.

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX

pauseloop:
	PAUSE
	DECQ CX
	JGT  pauseloop
	RET

// Adds or compares the lanes of Y0 into X0, in a fixed tree.
#define ACROSS(OP128, OPS) \
	VEXTRACTF128 $1, Y0, X1     \
	OP128        X1, X0, X0     \
	VPERMILPS    $0x4e, X0, X1  \
	OP128        X1, X0, X0     \
	VPERMILPS    $0xb1, X0, X1  \
	OPS          X1, X0, X0

// func sumSquaresAVX2(x *float32, n int) float32
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-20
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ   $32, CX
	JLT    sqrest

sqloop:
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS Y4, Y4, Y0
	VFMADD231PS Y5, Y5, Y1
	VFMADD231PS Y6, Y6, Y2
	VFMADD231PS Y7, Y7, Y3
	ADDQ        $128, SI
	SUBQ        $32, CX
	JGE         sqloop

sqrest:
	ADDQ $32, CX
	JEQ  sqdone

sqtail:
	VMOVUPS     (SI), Y4
	VFMADD231PS Y4, Y4, Y0
	ADDQ        $32, SI
	SUBQ        $8, CX
	JGT         sqtail

sqdone:
	VADDPS Y1, Y0, Y0
	VADDPS Y3, Y2, Y2
	VADDPS Y2, Y0, Y0
	ACROSS(VADDPS, VADDSS)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func scaleMulAVX2(dst, x, w *float32, s float32, n int)
TEXT ·scaleMulAVX2(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         w+16(FP), DX
	VBROADCASTSS s+24(FP), Y0
	MOVQ         n+32(FP), CX
	XORQ         AX, AX
	TESTQ        CX, CX
	JLE          smdone

smloop:
	VMULPS  (SI)(AX*4), Y0, Y1
	VMULPS  (DX)(AX*4), Y1, Y1
	VMOVUPS Y1, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     smloop

smdone:
	VZEROUPPER
	RET

// func rotateAVX2(a, b, cos, sin *float32, n int)
TEXT ·rotateAVX2(SB), NOSPLIT, $0-40
	MOVQ  a+0(FP), DI
	MOVQ  b+8(FP), SI
	MOVQ  cos+16(FP), DX
	MOVQ  sin+24(FP), BX
	MOVQ  n+32(FP), CX
	XORQ  AX, AX
	TESTQ CX, CX
	JLE   rotdone

rotloop:
	VMOVUPS     (DI)(AX*4), Y0
	VMOVUPS     (SI)(AX*4), Y1
	VMOVUPS     (DX)(AX*4), Y2
	VMOVUPS     (BX)(AX*4), Y3
	VMULPS      Y3, Y1, Y4
	VMULPS      Y3, Y0, Y5
	VFMSUB231PS Y2, Y0, Y4
	VFMADD231PS Y2, Y1, Y5
	VMOVUPS     Y4, (DI)(AX*4)
	VMOVUPS     Y5, (SI)(AX*4)
	ADDQ        $8, AX
	CMPQ        AX, CX
	JLT         rotloop

rotdone:
	VZEROUPPER
	RET

// func largestAVX2(x *float32, n int) float32
TEXT ·largestAVX2(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	MOVL         $0xff800000, AX
	VMOVD        AX, X0
	VPBROADCASTD X0, Y0
	VMOVAPS      Y0, Y1
	VMOVAPS      Y0, Y2
	VMOVAPS      Y0, Y3
	SUBQ         $32, CX
	JLT          maxrest

	// Of a NaN and a number VMAXPS gives its first operand as Go orders them.
maxloop:
	VMOVUPS (SI), Y4
	VMOVUPS 32(SI), Y5
	VMOVUPS 64(SI), Y6
	VMOVUPS 96(SI), Y7
	VMAXPS  Y0, Y4, Y0
	VMAXPS  Y1, Y5, Y1
	VMAXPS  Y2, Y6, Y2
	VMAXPS  Y3, Y7, Y3
	ADDQ    $128, SI
	SUBQ    $32, CX
	JGE     maxloop

maxrest:
	ADDQ $32, CX
	JEQ  maxdone

maxtail:
	VMOVUPS (SI), Y4
	VMAXPS  Y0, Y4, Y0
	ADDQ    $32, SI
	SUBQ    $8, CX
	JGT     maxtail

maxdone:
	VMAXPS Y1, Y0, Y0
	VMAXPS Y3, Y2, Y2
	VMAXPS Y2, Y0, Y0
	ACROSS(VMAXPS, VMAXSS)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func findAVX2(x *float32, n int, v float32) int
TEXT ·findAVX2(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS v+16(FP), Y0
	XORQ         AX, AX
	TESTQ        CX, CX
	JLE          findnone

findloop:
	VCMPPS    $0, (SI)(AX*4), Y0, Y1
	VMOVMSKPS Y1, DX
	TESTL     DX, DX
	JNE       found
	ADDQ      $8, AX
	CMPQ      AX, CX
	JLT       findloop

findnone:
	MOVQ CX, ret+24(FP)
	VZEROUPPER
	RET

found:
	BSFL DX, DX
	ADDQ DX, AX
	MOVQ AX, ret+24(FP)
	VZEROUPPER
	RET

// func blendAVX2(acc, part *float32, a, b float32, n int)
TEXT ·blendAVX2(SB), NOSPLIT, $0-32
	MOVQ         acc+0(FP), DI
	MOVQ         part+8(FP), SI
	VBROADCASTSS a+16(FP), Y0
	VBROADCASTSS b+20(FP), Y1
	MOVQ         n+24(FP), CX
	XORQ         AX, AX
	TESTQ        CX, CX
	JLE          blenddone

blendloop:
	VMULPS      (DI)(AX*4), Y0, Y2
	VFMADD231PS (SI)(AX*4), Y1, Y2
	VMOVUPS     Y2, (DI)(AX*4)
	ADDQ        $8, AX
	CMPQ        AX, CX
	JLT         blendloop

blenddone:
	VZEROUPPER
	RET

// Constants of e^x, each for 8 lanes.
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

CONST8(expLow, 0xc2aeac50)   // -87.33655: below, e^x is taken as 0
CONST8(expHigh, 0x42b0c0a5)  // 88.37626: above, e^x stays what it is here
CONST8(log2e, 0x3fb8aa3b)    // 1/ln 2
CONST8(ln2high, 0x3f317200)  // ln 2 in two parts: n times the first is exact
CONST8(ln2low, 0x35bfbe8e)
CONST8(one, 0x3f800000)
CONST8(inv2, 0x3f000000)     // 1/2!
CONST8(inv3, 0x3e2aaaab)     // 1/3! …
CONST8(inv4, 0x3d2aaaab)
CONST8(inv5, 0x3c088889)
CONST8(inv6, 0x3ab60b61)
CONST8(inv7, 0x39500d01)
CONST8(bias, 0x0000007f)     // of the exponent

// Y0 = e^Y0, NaN stays; uses Y1, Y2, Y3. e^x = 2^n · e^r with n = round(x/ln 2),
// |r| ≤ ln 2 / 2, and e^r by its series up to r^7/7!: relative error 6e-9, then
// float32's own rounding.
#define EXP \
	VCMPPS       $1, expLow<>(SB), Y0, Y3  \
	VMOVUPS      expLow<>(SB), Y1          \
	VMAXPS       Y0, Y1, Y0                \
	VMOVUPS      expHigh<>(SB), Y1         \
	VMINPS       Y0, Y1, Y0                \
	VMULPS       log2e<>(SB), Y0, Y1       \
	VROUNDPS     $8, Y1, Y1                \
	VFNMADD231PS ln2high<>(SB), Y1, Y0     \
	VFNMADD231PS ln2low<>(SB), Y1, Y0      \
	VCVTPS2DQ    Y1, Y1                    \
	VPADDD       bias<>(SB), Y1, Y1        \
	VPSLLD       $23, Y1, Y1               \
	VMOVUPS      inv7<>(SB), Y2            \
	VFMADD213PS  inv6<>(SB), Y0, Y2        \
	VFMADD213PS  inv5<>(SB), Y0, Y2        \
	VFMADD213PS  inv4<>(SB), Y0, Y2        \
	VFMADD213PS  inv3<>(SB), Y0, Y2        \
	VFMADD213PS  inv2<>(SB), Y0, Y2        \
	VFMADD213PS  one<>(SB), Y0, Y2         \
	VFMADD213PS  one<>(SB), Y0, Y2         \
	VMULPS       Y1, Y2, Y0                \
	VANDNPS      Y0, Y3, Y0

// func expSumAVX2(x *float32, n int, shift float32) float32
TEXT ·expSumAVX2(SB), NOSPLIT, $0-28
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS shift+16(FP), Y4
	VXORPS       Y5, Y5, Y5
	TESTQ        CX, CX
	JLE          expdone

exploop:
	VMOVUPS (SI), Y0
	VSUBPS  Y4, Y0, Y0
	EXP
	VADDPS  Y0, Y5, Y5
	VMOVUPS Y0, (SI)
	ADDQ    $32, SI
	SUBQ    $8, CX
	JGT     exploop

expdone:
	VMOVAPS Y5, Y0
	ACROSS(VADDPS, VADDSS)
	VMOVSS  X0, ret+24(FP)
	VZEROUPPER
	RET

// func gateAVX2(dst, x, up *float32, a, b float32, n int)
TEXT ·gateAVX2(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         up+16(FP), DX
	VBROADCASTSS a+24(FP), Y4
	VBROADCASTSS b+28(FP), Y5
	MOVQ         n+32(FP), CX
	MOVL         b+28(FP), BX   // 0: without g², which may be infinite
	VXORPS       Y7, Y7, Y7
	XORQ         AX, AX
	TESTQ        CX, CX
	JLE          gatedone

gateloop:
	VMOVUPS (SI)(AX*4), Y6
	VMULPS  Y6, Y4, Y0
	TESTL   BX, BX
	JEQ     gateexp
	VMULPS      Y6, Y6, Y0
	VFMADD213PS Y4, Y5, Y0
	VMULPS      Y6, Y0, Y0

gateexp:
	VSUBPS  Y0, Y7, Y0
	EXP
	VADDPS  one<>(SB), Y0, Y0
	VMULPS  (DX)(AX*4), Y6, Y6
	VDIVPS  Y0, Y6, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     gateloop

gatedone:
	VZEROUPPER
	RET

// Constants of the normal distribution.
CONST8(half, 0x3f000000)
CONST8(rsqrt2, 0x3f3504f3)    // 1/√2
CONST8(absMask, 0x7fffffff)
CONST8(erf0, 0x3f906ebb)  // 2/√π · (−1)^n / (n! (2n+1))
CONST8(erf1, 0xbec093a3)
CONST8(erf2, 0x3de71791)
CONST8(erf3, 0xbcdc1672)
CONST8(erf4, 0x3bab2de7)
CONST8(erf5, 0xba6016da)
CONST8(erf6, 0x38fcd193)
CONST8(erf7, 0xb77a692e)
CONST8(erf8, 0x35dcf365)
CONST8(erf9, 0xb42fba17)
CONST8(erf10, 0x327e62b9)
CONST8(erfc0, 0xbfa1fc4e) // -1.26551223 …
CONST8(erfc1, 0x3f8000c7)
CONST8(erfc2, 0x3ebf88fb)
CONST8(erfc3, 0x3dc636c9)
CONST8(erfc4, 0xbe3ec24c)
CONST8(erfc5, 0x3e8ec7cc)
CONST8(erfc6, 0xbf914e5d)
CONST8(erfc7, 0x3fbe87b0)
CONST8(erfc8, 0xbf527892)
CONST8(erfc9, 0x3e2ef945)

#define HORNER(c, x, acc) VFMADD213PS c<>(SB), x, acc

// func gateErfAVX2(dst, x, up *float32, n int)
//
// dst = x · Φ(x) · up. With z = |x|/√2, Φ is ½ ± ½ erf(z): below z = 1 by the
// series of erf, above by erfc(z) = t · e^(−z² + P(t)), t = 1/(1 + z/2) (Press
// et al., Numerical Recipes, 6.2: relative error 1.2e-7).
TEXT ·gateErfAVX2(SB), NOSPLIT, $0-32
	MOVQ  dst+0(FP), DI
	MOVQ  x+8(FP), SI
	MOVQ  up+16(FP), DX
	MOVQ  n+24(FP), CX
	XORQ  AX, AX
	TESTQ CX, CX
	JLE   erfdone

erfloop:
	VMOVUPS (SI)(AX*4), Y6
	VANDPS  absMask<>(SB), Y6, Y7
	VMULPS  rsqrt2<>(SB), Y7, Y7 // z
	VMULPS  Y6, Y6, Y8
	VMULPS  half<>(SB), Y8, Y8   // z²
	VMOVUPS erf10<>(SB), Y9
	HORNER(erf9, Y8, Y9)
	HORNER(erf8, Y8, Y9)
	HORNER(erf7, Y8, Y9)
	HORNER(erf6, Y8, Y9)
	HORNER(erf5, Y8, Y9)
	HORNER(erf4, Y8, Y9)
	HORNER(erf3, Y8, Y9)
	HORNER(erf2, Y8, Y9)
	HORNER(erf1, Y8, Y9)
	HORNER(erf0, Y8, Y9)
	VMULPS  Y7, Y9, Y9           // erf z
	VMULPS  half<>(SB), Y7, Y10
	VADDPS  one<>(SB), Y10, Y10
	VMOVUPS one<>(SB), Y11
	VDIVPS  Y10, Y11, Y10        // t
	VMOVUPS erfc9<>(SB), Y0
	HORNER(erfc8, Y10, Y0)
	HORNER(erfc7, Y10, Y0)
	HORNER(erfc6, Y10, Y0)
	HORNER(erfc5, Y10, Y0)
	HORNER(erfc4, Y10, Y0)
	HORNER(erfc3, Y10, Y0)
	HORNER(erfc2, Y10, Y0)
	HORNER(erfc1, Y10, Y0)
	HORNER(erfc0, Y10, Y0)
	VSUBPS  Y8, Y0, Y0
	EXP
	VMULPS  Y10, Y0, Y0          // erfc z
	VMULPS  half<>(SB), Y0, Y0   // Φ(−|x|)
	VMULPS  half<>(SB), Y9, Y9
	VMOVUPS half<>(SB), Y1
	VSUBPS  Y9, Y1, Y2           // the same where z < 1
	VMOVUPS one<>(SB), Y11
	VCMPPS  $1, Y11, Y7, Y3
	VBLENDVPS Y3, Y2, Y0, Y0
	VSUBPS  Y0, Y11, Y2          // Φ(|x|)
	VADDPS  Y9, Y1, Y1
	VBLENDVPS Y3, Y1, Y2, Y2
	VBLENDVPS Y6, Y0, Y2, Y0     // by the sign of x
	VMULPS  Y6, Y0, Y0
	VMULPS  (DX)(AX*4), Y0, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     erfloop

erfdone:
	VZEROUPPER
	RET
