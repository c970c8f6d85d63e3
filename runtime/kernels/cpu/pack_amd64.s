//go:build !purego

#include "textflag.h"
#include "transpose_amd64.h"

// The 16 rows are done in two halves of 8, in turns of up to 16 words, a cache
// line: rows of a power of two bytes share one set of the first cache, which
// holds 8.
//
// SI source, DI destination, R13 quads of words that are left, R12 those of this
// turn; AX, DX, CX: the same of a half.
#define START \
	MOVQ dst+0(FP), DI    \
	MOVQ src+8(FP), SI    \
	MOVQ ld+16(FP), R9    \
	MOVQ n+24(FP), R13    \
	SHRQ $2, R13          \
	ROWS

#define TURN \
	MOVQ    $4, R12   \
	CMPQ    R13, R12  \
	CMOVQLT R13, R12  \
	MOVQ    SI, AX    \
	MOVQ    DI, DX    \
	MOVQ    R12, CX

#define NEXTTURN \
	MOVQ R12, CX      \
	SHLQ $4, CX       \
	ADDQ CX, SI       \
	SHLQ $4, CX       \
	ADDQ CX, DI       \
	SUBQ R12, R13

#define PUTWORDS \
	VMOVUPS Y0, (DX)     \
	VMOVUPS Y1, 64(DX)   \
	VMOVUPS Y2, 128(DX)  \
	VMOVUPS Y3, 192(DX)  \
	ADDQ    $256, DX

// func wordsAVX2(dst, src *byte, ld, n int)
TEXT ·wordsAVX2(SB), NOSPLIT, $0-32
	START

wordsturn:
	TURN

wordslow:
	QUAD
	PUTWORDS
	DECQ CX
	JNE  wordslow
	LEAQ (SI)(R9*8), AX
	LEAQ 32(DI), DX
	MOVQ R12, CX

wordshigh:
	QUAD
	PUTWORDS
	DECQ CX
	JNE  wordshigh
	NEXTTURN
	JNE  wordsturn
	VZEROUPPER
	RET

// The low halves of four words, then the high ones.
DATA halves<>+0(SB)/8, $0x0d0c090805040100
DATA halves<>+8(SB)/8, $0x0f0e0b0a07060302
DATA halves<>+16(SB)/8, $0x0d0c090805040100
DATA halves<>+24(SB)/8, $0x0f0e0b0a07060302
GLOBL halves<>(SB), RODATA|NOPTR, $32

#define PUTHALVES(y, x, at) \
	VPSHUFB      Y12, y, y          \
	VPERMQ       $0xd8, y, y        \
	VMOVDQU      x, at(DX)          \
	VEXTRACTI128 $1, y, (at+32)(DX)

#define PUT4HALVES \
	PUTHALVES(Y0, X0, 0)     \
	PUTHALVES(Y1, X1, 64)    \
	PUTHALVES(Y2, X2, 128)   \
	PUTHALVES(Y3, X3, 192)   \
	ADDQ $256, DX

// func halvesAVX2(dst, src *byte, ld, n int)
TEXT ·halvesAVX2(SB), NOSPLIT, $0-32
	START
	VMOVDQU halves<>(SB), Y12

halvesturn:
	TURN

halveslow:
	QUAD
	PUT4HALVES
	DECQ CX
	JNE  halveslow
	LEAQ (SI)(R9*8), AX
	LEAQ 16(DI), DX
	MOVQ R12, CX

halveshigh:
	QUAD
	PUT4HALVES
	DECQ CX
	JNE  halveshigh
	NEXTTURN
	JNE  halvesturn
	VZEROUPPER
	RET
