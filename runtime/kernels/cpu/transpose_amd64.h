// Rows that are transposed: AX the first of 8, R9 bytes from one to the next,
// R8, R10 and R11 the same 3, 5 and 7 times.
#define ROWS \
	LEAQ (R9)(R9*2), R8   \
	LEAQ (R9)(R9*4), R10  \
	LEAQ (R8)(R9*4), R11

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
