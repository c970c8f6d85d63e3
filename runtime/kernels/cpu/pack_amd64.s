//go:build !purego

#include "textflag.h"

// The 16 rows are done in two halves of 8, in turns of up to 16 words, a cache
// line: rows of a power of two bytes share one set of the first cache, which
// holds 8.
//
// SI source, DI destination, R9 ld, R8 3·ld, R10 5·ld, R11 7·ld, R13 quads of
// words that are left, R12 those of this turn; AX, DX, CX: the same of a half.
#define START \
	MOVQ dst+0(FP), DI    \
	MOVQ src+8(FP), SI    \
	MOVQ ld+16(FP), R9    \
	MOVQ n+24(FP), R13    \
	SHRQ $2, R13          \
	LEAQ (R9)(R9*2), R8   \
	LEAQ (R9)(R9*4), R10  \
	LEAQ (R8)(R9*4), R11

#define TURN \
	MOVQ    $4, R12   \
	CMPQ    R13, R12  \
	CMOVQLT R13, R12  \
	MOVQ    SI, AX    \
	MOVQ    DI, DX    \
	MOVQ    R12, CX

// 4 words of 8 rows: word k of rows 0..3 and 4..7 in Yk.
#define QUAD \
	VMOVUPS     (AX), X4                   \
	VMOVUPS     (AX)(R9*1), X5             \
	VMOVUPS     (AX)(R9*2), X6             \
	VMOVUPS     (AX)(R8*1), X7             \
	VINSERTF128 $1, (AX)(R9*4), Y4, Y4     \
	VINSERTF128 $1, (AX)(R10*1), Y5, Y5    \
	VINSERTF128 $1, (AX)(R8*2), Y6, Y6     \
	VINSERTF128 $1, (AX)(R11*1), Y7, Y7    \
	VUNPCKLPS   Y5, Y4, Y8                 \
	VUNPCKHPS   Y5, Y4, Y9                 \
	VUNPCKLPS   Y7, Y6, Y10                \
	VUNPCKHPS   Y7, Y6, Y11                \
	VUNPCKLPD   Y10, Y8, Y0                \
	VUNPCKHPD   Y10, Y8, Y1                \
	VUNPCKLPD   Y11, Y9, Y2                \
	VUNPCKHPD   Y11, Y9, Y3                \
	ADDQ        $16, AX

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
