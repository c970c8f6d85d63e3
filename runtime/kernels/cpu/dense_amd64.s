//go:build !purego

#include "textflag.h"

// Half of 64 weights at p(SI): low bytes to s(DI), codes in code, those without one
// to m(DX).
#define PACK(p, s, m, code) \
	VMOVDQU   p(SI), Y4        \
	VMOVDQU   (p+64)(SI), Y5   \
	VPSRLW    $8, Y4, Y6       \
	VPSRLW    $8, Y5, Y7       \
	VPAND     Y13, Y4, Y4      \
	VPAND     Y13, Y5, Y5      \
	VPACKUSWB Y7, Y6, Y6       \
	VPACKUSWB Y5, Y4, Y4       \
	VPAND     Y14, Y6, Y7      \
	VPANDN    Y6, Y14, Y6      \
	VPSRLW    $4, Y7, Y7       \
	VPSUBUSB  Y10, Y6, Y8      \
	VPCMPEQB  Y11, Y8, Y9      \
	VPCMPEQB  Y12, Y6, Y6      \
	VPANDN    Y9, Y6, Y9       \
	VPOR      Y7, Y8, code     \
	VMOVDQU   Y4, s(DI)        \
	VPMOVMSKB Y9, R8           \
	MOVL      R8, m(DX)

#define PACKHALF(h) \
	PACK(h, (64+h), (h/8), Y0)             \
	PACK((128+h), (128+h), (8+h/8), Y1)    \
	VPSLLW  $4, Y1, Y1                     \
	VPOR    Y1, Y0, Y0                     \
	VMOVDQU Y0, h(DI)

// func densePackAVX2(a *denseArgs)
TEXT ·densePackAVX2(SB), NOSPLIT, $0-8
	MOVQ         a+0(FP), AX
	MOVQ         0(AX), SI
	MOVQ         16(AX), DI
	MOVQ         40(AX), CX
	MOVQ         72(AX), DX
	VPBROADCASTB 56(AX), Y10
	VPBROADCASTB 64(AX), Y12
	VPXOR        Y11, Y11, Y11
	VPCMPEQD     Y15, Y15, Y15
	VPSRLW       $8, Y15, Y13      // 0x00ff
	VPABSB       Y15, Y14
	VPSLLW       $7, Y14, Y14      // 0x8080
	SHLQ         $2, CX

quarter:
	PACKHALF(0)
	PACKHALF(32)
	ADDQ $256, SI
	ADDQ $192, DI
	ADDQ $16, DX
	DECQ CX
	JNE  quarter
	VZEROUPPER
	RET

// func denseTopAVX2(panel *byte, groups int) int
TEXT ·denseTopAVX2(SB), NOSPLIT, $0-24
	MOVQ  panel+0(FP), SI
	MOVQ  groups+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	SHLQ  $3, CX

loop:
	VMOVDQU (SI), Y2
	VMOVDQU 32(SI), Y3
	VMOVDQU 64(SI), Y4
	VMOVDQU 96(SI), Y5
	VPSLLW  $1, Y2, Y2
	VPSLLW  $1, Y3, Y3
	VPSLLW  $1, Y4, Y4
	VPSLLW  $1, Y5, Y5
	VPMAXUW Y2, Y0, Y0
	VPMAXUW Y3, Y1, Y1
	VPMAXUW Y4, Y0, Y0
	VPMAXUW Y5, Y1, Y1
	ADDQ    $128, SI
	DECQ    CX
	JNE     loop
	VPMAXUW      Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXUW      X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPMAXUW      X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPMAXUW      X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, BX
	SHRL         $25, AX
	SHRL         $9, BX
	ANDL         $0x7f, BX
	CMPL         AX, BX
	CMOVLLT      BX, AX
	MOVQ         AX, ret+16(FP)
	VZEROUPPER
	RET
