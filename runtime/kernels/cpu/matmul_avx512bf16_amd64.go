// Written by asmgen; do not edit. go test ./runtime/kernels/cpu/asmgen -update

//go:build !purego

package cpu

//go:noescape
func mmDotsR1P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR1P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR1P4AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR1P8AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR2P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR2P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR2P4AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR3P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR3P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR3P4AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR4P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR4P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR4P4AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR5P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR5P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR6P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR6P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR7P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR7P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR8P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR8P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR9P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR9P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR10P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR10P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR11P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR11P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR12P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDotsR12P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR1P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR1P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR1P4AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR2P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR2P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR2P4AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR3P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR3P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR3P4AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR4P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR4P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR4P4AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR5P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR5P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR6P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR6P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR7P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR7P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR8P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR8P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR9P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR9P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR10P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR10P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR11P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR11P2AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR12P1AVX512BF16(a *mmArgs)

//go:noescape
func mmPairsR12P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR1P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR1P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR2P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR2P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR3P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR3P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR4P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR4P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR5P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR5P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR6P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR6P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR7P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR7P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR8P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR8P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR9P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR9P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR10P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR10P2AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR11P1AVX512BF16(a *mmArgs)

//go:noescape
func mmDenseR12P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR1P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR1P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR2P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR2P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR3P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR3P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR4P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR4P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR5P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR5P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR6P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR6P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR7P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR7P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR8P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR8P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR9P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR9P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR10P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR10P2AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR11P1AVX512BF16(a *mmArgs)

//go:noescape
func mmFlipR12P1AVX512BF16(a *mmArgs)

//go:noescape
func denseUnpackAVX512BF16(a *denseArgs)

//go:noescape
func roundAVX512BF16(dst *byte, x *float32, groups int)

func peakDPBF16PS512(n int)

func mmAVX512BF16() *mmSet {
	s := mmAVX512VNNI()
	s.kernels[fmtDots][1][0] = mmDotsR1P1AVX512BF16
	s.kernels[fmtDots][1][1] = mmDotsR1P2AVX512BF16
	s.kernels[fmtDots][1][2] = mmDotsR1P4AVX512BF16
	s.kernels[fmtDots][1][3] = mmDotsR1P8AVX512BF16
	s.kernels[fmtDots][2][0] = mmDotsR2P1AVX512BF16
	s.kernels[fmtDots][2][1] = mmDotsR2P2AVX512BF16
	s.kernels[fmtDots][2][2] = mmDotsR2P4AVX512BF16
	s.kernels[fmtDots][3][0] = mmDotsR3P1AVX512BF16
	s.kernels[fmtDots][3][1] = mmDotsR3P2AVX512BF16
	s.kernels[fmtDots][3][2] = mmDotsR3P4AVX512BF16
	s.kernels[fmtDots][4][0] = mmDotsR4P1AVX512BF16
	s.kernels[fmtDots][4][1] = mmDotsR4P2AVX512BF16
	s.kernels[fmtDots][4][2] = mmDotsR4P4AVX512BF16
	s.kernels[fmtDots][5][0] = mmDotsR5P1AVX512BF16
	s.kernels[fmtDots][5][1] = mmDotsR5P2AVX512BF16
	s.kernels[fmtDots][6][0] = mmDotsR6P1AVX512BF16
	s.kernels[fmtDots][6][1] = mmDotsR6P2AVX512BF16
	s.kernels[fmtDots][7][0] = mmDotsR7P1AVX512BF16
	s.kernels[fmtDots][7][1] = mmDotsR7P2AVX512BF16
	s.kernels[fmtDots][8][0] = mmDotsR8P1AVX512BF16
	s.kernels[fmtDots][8][1] = mmDotsR8P2AVX512BF16
	s.kernels[fmtDots][9][0] = mmDotsR9P1AVX512BF16
	s.kernels[fmtDots][9][1] = mmDotsR9P2AVX512BF16
	s.kernels[fmtDots][10][0] = mmDotsR10P1AVX512BF16
	s.kernels[fmtDots][10][1] = mmDotsR10P2AVX512BF16
	s.kernels[fmtDots][11][0] = mmDotsR11P1AVX512BF16
	s.kernels[fmtDots][11][1] = mmDotsR11P2AVX512BF16
	s.kernels[fmtDots][12][0] = mmDotsR12P1AVX512BF16
	s.kernels[fmtDots][12][1] = mmDotsR12P2AVX512BF16
	s.kernels[fmtPairs][1][0] = mmPairsR1P1AVX512BF16
	s.kernels[fmtPairs][1][1] = mmPairsR1P2AVX512BF16
	s.kernels[fmtPairs][1][2] = mmPairsR1P4AVX512BF16
	s.kernels[fmtPairs][2][0] = mmPairsR2P1AVX512BF16
	s.kernels[fmtPairs][2][1] = mmPairsR2P2AVX512BF16
	s.kernels[fmtPairs][2][2] = mmPairsR2P4AVX512BF16
	s.kernels[fmtPairs][3][0] = mmPairsR3P1AVX512BF16
	s.kernels[fmtPairs][3][1] = mmPairsR3P2AVX512BF16
	s.kernels[fmtPairs][3][2] = mmPairsR3P4AVX512BF16
	s.kernels[fmtPairs][4][0] = mmPairsR4P1AVX512BF16
	s.kernels[fmtPairs][4][1] = mmPairsR4P2AVX512BF16
	s.kernels[fmtPairs][4][2] = mmPairsR4P4AVX512BF16
	s.kernels[fmtPairs][5][0] = mmPairsR5P1AVX512BF16
	s.kernels[fmtPairs][5][1] = mmPairsR5P2AVX512BF16
	s.kernels[fmtPairs][6][0] = mmPairsR6P1AVX512BF16
	s.kernels[fmtPairs][6][1] = mmPairsR6P2AVX512BF16
	s.kernels[fmtPairs][7][0] = mmPairsR7P1AVX512BF16
	s.kernels[fmtPairs][7][1] = mmPairsR7P2AVX512BF16
	s.kernels[fmtPairs][8][0] = mmPairsR8P1AVX512BF16
	s.kernels[fmtPairs][8][1] = mmPairsR8P2AVX512BF16
	s.kernels[fmtPairs][9][0] = mmPairsR9P1AVX512BF16
	s.kernels[fmtPairs][9][1] = mmPairsR9P2AVX512BF16
	s.kernels[fmtPairs][10][0] = mmPairsR10P1AVX512BF16
	s.kernels[fmtPairs][10][1] = mmPairsR10P2AVX512BF16
	s.kernels[fmtPairs][11][0] = mmPairsR11P1AVX512BF16
	s.kernels[fmtPairs][11][1] = mmPairsR11P2AVX512BF16
	s.kernels[fmtPairs][12][0] = mmPairsR12P1AVX512BF16
	s.kernels[fmtPairs][12][1] = mmPairsR12P2AVX512BF16
	s.kernels[fmtDense][1][0] = mmDenseR1P1AVX512BF16
	s.kernels[fmtDense][1][1] = mmDenseR1P2AVX512BF16
	s.kernels[fmtDense][2][0] = mmDenseR2P1AVX512BF16
	s.kernels[fmtDense][2][1] = mmDenseR2P2AVX512BF16
	s.kernels[fmtDense][3][0] = mmDenseR3P1AVX512BF16
	s.kernels[fmtDense][3][1] = mmDenseR3P2AVX512BF16
	s.kernels[fmtDense][4][0] = mmDenseR4P1AVX512BF16
	s.kernels[fmtDense][4][1] = mmDenseR4P2AVX512BF16
	s.kernels[fmtDense][5][0] = mmDenseR5P1AVX512BF16
	s.kernels[fmtDense][5][1] = mmDenseR5P2AVX512BF16
	s.kernels[fmtDense][6][0] = mmDenseR6P1AVX512BF16
	s.kernels[fmtDense][6][1] = mmDenseR6P2AVX512BF16
	s.kernels[fmtDense][7][0] = mmDenseR7P1AVX512BF16
	s.kernels[fmtDense][7][1] = mmDenseR7P2AVX512BF16
	s.kernels[fmtDense][8][0] = mmDenseR8P1AVX512BF16
	s.kernels[fmtDense][8][1] = mmDenseR8P2AVX512BF16
	s.kernels[fmtDense][9][0] = mmDenseR9P1AVX512BF16
	s.kernels[fmtDense][9][1] = mmDenseR9P2AVX512BF16
	s.kernels[fmtDense][10][0] = mmDenseR10P1AVX512BF16
	s.kernels[fmtDense][10][1] = mmDenseR10P2AVX512BF16
	s.kernels[fmtDense][11][0] = mmDenseR11P1AVX512BF16
	s.kernels[fmtDense][12][0] = mmDenseR12P1AVX512BF16
	s.kernels[fmtFlip][1][0] = mmFlipR1P1AVX512BF16
	s.kernels[fmtFlip][1][1] = mmFlipR1P2AVX512BF16
	s.kernels[fmtFlip][2][0] = mmFlipR2P1AVX512BF16
	s.kernels[fmtFlip][2][1] = mmFlipR2P2AVX512BF16
	s.kernels[fmtFlip][3][0] = mmFlipR3P1AVX512BF16
	s.kernels[fmtFlip][3][1] = mmFlipR3P2AVX512BF16
	s.kernels[fmtFlip][4][0] = mmFlipR4P1AVX512BF16
	s.kernels[fmtFlip][4][1] = mmFlipR4P2AVX512BF16
	s.kernels[fmtFlip][5][0] = mmFlipR5P1AVX512BF16
	s.kernels[fmtFlip][5][1] = mmFlipR5P2AVX512BF16
	s.kernels[fmtFlip][6][0] = mmFlipR6P1AVX512BF16
	s.kernels[fmtFlip][6][1] = mmFlipR6P2AVX512BF16
	s.kernels[fmtFlip][7][0] = mmFlipR7P1AVX512BF16
	s.kernels[fmtFlip][7][1] = mmFlipR7P2AVX512BF16
	s.kernels[fmtFlip][8][0] = mmFlipR8P1AVX512BF16
	s.kernels[fmtFlip][8][1] = mmFlipR8P2AVX512BF16
	s.kernels[fmtFlip][9][0] = mmFlipR9P1AVX512BF16
	s.kernels[fmtFlip][9][1] = mmFlipR9P2AVX512BF16
	s.kernels[fmtFlip][10][0] = mmFlipR10P1AVX512BF16
	s.kernels[fmtFlip][10][1] = mmFlipR10P2AVX512BF16
	s.kernels[fmtFlip][11][0] = mmFlipR11P1AVX512BF16
	s.kernels[fmtFlip][12][0] = mmFlipR12P1AVX512BF16
	return s
}
