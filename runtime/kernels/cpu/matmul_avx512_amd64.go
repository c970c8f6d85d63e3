// Written by asmgen; do not edit. go test ./runtime/kernels/cpu/asmgen -update

//go:build !purego

package cpu

//go:noescape
func mmBF16R1P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R1P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R1P4AVX512(a *mmArgs)

//go:noescape
func mmBF16R1P8AVX512(a *mmArgs)

//go:noescape
func mmBF16R2P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R2P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R2P4AVX512(a *mmArgs)

//go:noescape
func mmBF16R3P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R3P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R3P4AVX512(a *mmArgs)

//go:noescape
func mmBF16R4P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R4P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R4P4AVX512(a *mmArgs)

//go:noescape
func mmBF16R5P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R5P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R6P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R6P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R7P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R7P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R8P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R8P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R9P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R9P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R10P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R10P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R11P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R11P2AVX512(a *mmArgs)

//go:noescape
func mmBF16R12P1AVX512(a *mmArgs)

//go:noescape
func mmBF16R12P2AVX512(a *mmArgs)

//go:noescape
func mmF16R1P1AVX512(a *mmArgs)

//go:noescape
func mmF16R1P2AVX512(a *mmArgs)

//go:noescape
func mmF16R1P4AVX512(a *mmArgs)

//go:noescape
func mmF16R1P8AVX512(a *mmArgs)

//go:noescape
func mmF16R2P1AVX512(a *mmArgs)

//go:noescape
func mmF16R2P2AVX512(a *mmArgs)

//go:noescape
func mmF16R2P4AVX512(a *mmArgs)

//go:noescape
func mmF16R3P1AVX512(a *mmArgs)

//go:noescape
func mmF16R3P2AVX512(a *mmArgs)

//go:noescape
func mmF16R3P4AVX512(a *mmArgs)

//go:noescape
func mmF16R4P1AVX512(a *mmArgs)

//go:noescape
func mmF16R4P2AVX512(a *mmArgs)

//go:noescape
func mmF16R4P4AVX512(a *mmArgs)

//go:noescape
func mmF16R5P1AVX512(a *mmArgs)

//go:noescape
func mmF16R5P2AVX512(a *mmArgs)

//go:noescape
func mmF16R6P1AVX512(a *mmArgs)

//go:noescape
func mmF16R6P2AVX512(a *mmArgs)

//go:noescape
func mmF16R7P1AVX512(a *mmArgs)

//go:noescape
func mmF16R7P2AVX512(a *mmArgs)

//go:noescape
func mmF16R8P1AVX512(a *mmArgs)

//go:noescape
func mmF16R8P2AVX512(a *mmArgs)

//go:noescape
func mmF16R9P1AVX512(a *mmArgs)

//go:noescape
func mmF16R9P2AVX512(a *mmArgs)

//go:noescape
func mmF16R10P1AVX512(a *mmArgs)

//go:noescape
func mmF16R10P2AVX512(a *mmArgs)

//go:noescape
func mmF16R11P1AVX512(a *mmArgs)

//go:noescape
func mmF16R11P2AVX512(a *mmArgs)

//go:noescape
func mmF16R12P1AVX512(a *mmArgs)

//go:noescape
func mmF16R12P2AVX512(a *mmArgs)

//go:noescape
func mmF32R1P1AVX512(a *mmArgs)

//go:noescape
func mmF32R1P2AVX512(a *mmArgs)

//go:noescape
func mmF32R1P4AVX512(a *mmArgs)

//go:noescape
func mmF32R1P8AVX512(a *mmArgs)

//go:noescape
func mmF32R2P1AVX512(a *mmArgs)

//go:noescape
func mmF32R2P2AVX512(a *mmArgs)

//go:noescape
func mmF32R2P4AVX512(a *mmArgs)

//go:noescape
func mmF32R3P1AVX512(a *mmArgs)

//go:noescape
func mmF32R3P2AVX512(a *mmArgs)

//go:noescape
func mmF32R3P4AVX512(a *mmArgs)

//go:noescape
func mmF32R4P1AVX512(a *mmArgs)

//go:noescape
func mmF32R4P2AVX512(a *mmArgs)

//go:noescape
func mmF32R4P4AVX512(a *mmArgs)

//go:noescape
func mmF32R5P1AVX512(a *mmArgs)

//go:noescape
func mmF32R5P2AVX512(a *mmArgs)

//go:noescape
func mmF32R6P1AVX512(a *mmArgs)

//go:noescape
func mmF32R6P2AVX512(a *mmArgs)

//go:noescape
func mmF32R7P1AVX512(a *mmArgs)

//go:noescape
func mmF32R7P2AVX512(a *mmArgs)

//go:noescape
func mmF32R8P1AVX512(a *mmArgs)

//go:noescape
func mmF32R8P2AVX512(a *mmArgs)

//go:noescape
func mmF32R9P1AVX512(a *mmArgs)

//go:noescape
func mmF32R9P2AVX512(a *mmArgs)

//go:noescape
func mmF32R10P1AVX512(a *mmArgs)

//go:noescape
func mmF32R10P2AVX512(a *mmArgs)

//go:noescape
func mmF32R11P1AVX512(a *mmArgs)

//go:noescape
func mmF32R11P2AVX512(a *mmArgs)

//go:noescape
func mmF32R12P1AVX512(a *mmArgs)

//go:noescape
func mmF32R12P2AVX512(a *mmArgs)

//go:noescape
func mmI8R1P1AVX512(a *mmArgs)

//go:noescape
func mmI8R1P2AVX512(a *mmArgs)

//go:noescape
func mmI8R1P4AVX512(a *mmArgs)

//go:noescape
func mmI8R1P8AVX512(a *mmArgs)

//go:noescape
func mmI8R2P1AVX512(a *mmArgs)

//go:noescape
func mmI8R2P2AVX512(a *mmArgs)

//go:noescape
func mmI8R2P4AVX512(a *mmArgs)

//go:noescape
func mmI8R3P1AVX512(a *mmArgs)

//go:noescape
func mmI8R3P2AVX512(a *mmArgs)

//go:noescape
func mmI8R3P4AVX512(a *mmArgs)

//go:noescape
func mmI8R4P1AVX512(a *mmArgs)

//go:noescape
func mmI8R4P2AVX512(a *mmArgs)

//go:noescape
func mmI8R4P4AVX512(a *mmArgs)

//go:noescape
func mmI8R5P1AVX512(a *mmArgs)

//go:noescape
func mmI8R5P2AVX512(a *mmArgs)

//go:noescape
func mmI8R6P1AVX512(a *mmArgs)

//go:noescape
func mmI8R6P2AVX512(a *mmArgs)

//go:noescape
func mmI8R7P1AVX512(a *mmArgs)

//go:noescape
func mmI8R7P2AVX512(a *mmArgs)

//go:noescape
func mmI8R8P1AVX512(a *mmArgs)

//go:noescape
func mmI8R8P2AVX512(a *mmArgs)

//go:noescape
func mmI8R9P1AVX512(a *mmArgs)

//go:noescape
func mmI8R9P2AVX512(a *mmArgs)

//go:noescape
func mmI8R10P1AVX512(a *mmArgs)

//go:noescape
func mmI8R10P2AVX512(a *mmArgs)

//go:noescape
func mmI8R11P1AVX512(a *mmArgs)

//go:noescape
func mmI8R11P2AVX512(a *mmArgs)

//go:noescape
func mmI8R12P1AVX512(a *mmArgs)

//go:noescape
func mmI8R12P2AVX512(a *mmArgs)

//go:noescape
func mmQ8R1P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R1P2AVX512(a *mmArgs)

//go:noescape
func mmQ8R1P4AVX512(a *mmArgs)

//go:noescape
func mmQ8R2P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R2P2AVX512(a *mmArgs)

//go:noescape
func mmQ8R3P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R4P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R5P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R6P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R7P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R8P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R9P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R10P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R11P1AVX512(a *mmArgs)

//go:noescape
func mmQ8R12P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R1P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R1P2AVX512(a *mmArgs)

//go:noescape
func mmQ4R1P4AVX512(a *mmArgs)

//go:noescape
func mmQ4R2P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R2P2AVX512(a *mmArgs)

//go:noescape
func mmQ4R3P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R4P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R5P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R6P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R7P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R8P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R9P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R10P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R11P1AVX512(a *mmArgs)

//go:noescape
func mmQ4R12P1AVX512(a *mmArgs)

func mmAVX512() *mmSet {
	s := &mmSet{maxRows: 12}
	s.kernels[fmtBF16][1][0] = mmBF16R1P1AVX512
	s.kernels[fmtBF16][1][1] = mmBF16R1P2AVX512
	s.kernels[fmtBF16][1][2] = mmBF16R1P4AVX512
	s.kernels[fmtBF16][1][3] = mmBF16R1P8AVX512
	s.kernels[fmtBF16][2][0] = mmBF16R2P1AVX512
	s.kernels[fmtBF16][2][1] = mmBF16R2P2AVX512
	s.kernels[fmtBF16][2][2] = mmBF16R2P4AVX512
	s.kernels[fmtBF16][3][0] = mmBF16R3P1AVX512
	s.kernels[fmtBF16][3][1] = mmBF16R3P2AVX512
	s.kernels[fmtBF16][3][2] = mmBF16R3P4AVX512
	s.kernels[fmtBF16][4][0] = mmBF16R4P1AVX512
	s.kernels[fmtBF16][4][1] = mmBF16R4P2AVX512
	s.kernels[fmtBF16][4][2] = mmBF16R4P4AVX512
	s.kernels[fmtBF16][5][0] = mmBF16R5P1AVX512
	s.kernels[fmtBF16][5][1] = mmBF16R5P2AVX512
	s.kernels[fmtBF16][6][0] = mmBF16R6P1AVX512
	s.kernels[fmtBF16][6][1] = mmBF16R6P2AVX512
	s.kernels[fmtBF16][7][0] = mmBF16R7P1AVX512
	s.kernels[fmtBF16][7][1] = mmBF16R7P2AVX512
	s.kernels[fmtBF16][8][0] = mmBF16R8P1AVX512
	s.kernels[fmtBF16][8][1] = mmBF16R8P2AVX512
	s.kernels[fmtBF16][9][0] = mmBF16R9P1AVX512
	s.kernels[fmtBF16][9][1] = mmBF16R9P2AVX512
	s.kernels[fmtBF16][10][0] = mmBF16R10P1AVX512
	s.kernels[fmtBF16][10][1] = mmBF16R10P2AVX512
	s.kernels[fmtBF16][11][0] = mmBF16R11P1AVX512
	s.kernels[fmtBF16][11][1] = mmBF16R11P2AVX512
	s.kernels[fmtBF16][12][0] = mmBF16R12P1AVX512
	s.kernels[fmtBF16][12][1] = mmBF16R12P2AVX512
	s.kernels[fmtF16][1][0] = mmF16R1P1AVX512
	s.kernels[fmtF16][1][1] = mmF16R1P2AVX512
	s.kernels[fmtF16][1][2] = mmF16R1P4AVX512
	s.kernels[fmtF16][1][3] = mmF16R1P8AVX512
	s.kernels[fmtF16][2][0] = mmF16R2P1AVX512
	s.kernels[fmtF16][2][1] = mmF16R2P2AVX512
	s.kernels[fmtF16][2][2] = mmF16R2P4AVX512
	s.kernels[fmtF16][3][0] = mmF16R3P1AVX512
	s.kernels[fmtF16][3][1] = mmF16R3P2AVX512
	s.kernels[fmtF16][3][2] = mmF16R3P4AVX512
	s.kernels[fmtF16][4][0] = mmF16R4P1AVX512
	s.kernels[fmtF16][4][1] = mmF16R4P2AVX512
	s.kernels[fmtF16][4][2] = mmF16R4P4AVX512
	s.kernels[fmtF16][5][0] = mmF16R5P1AVX512
	s.kernels[fmtF16][5][1] = mmF16R5P2AVX512
	s.kernels[fmtF16][6][0] = mmF16R6P1AVX512
	s.kernels[fmtF16][6][1] = mmF16R6P2AVX512
	s.kernels[fmtF16][7][0] = mmF16R7P1AVX512
	s.kernels[fmtF16][7][1] = mmF16R7P2AVX512
	s.kernels[fmtF16][8][0] = mmF16R8P1AVX512
	s.kernels[fmtF16][8][1] = mmF16R8P2AVX512
	s.kernels[fmtF16][9][0] = mmF16R9P1AVX512
	s.kernels[fmtF16][9][1] = mmF16R9P2AVX512
	s.kernels[fmtF16][10][0] = mmF16R10P1AVX512
	s.kernels[fmtF16][10][1] = mmF16R10P2AVX512
	s.kernels[fmtF16][11][0] = mmF16R11P1AVX512
	s.kernels[fmtF16][11][1] = mmF16R11P2AVX512
	s.kernels[fmtF16][12][0] = mmF16R12P1AVX512
	s.kernels[fmtF16][12][1] = mmF16R12P2AVX512
	s.kernels[fmtF32][1][0] = mmF32R1P1AVX512
	s.kernels[fmtF32][1][1] = mmF32R1P2AVX512
	s.kernels[fmtF32][1][2] = mmF32R1P4AVX512
	s.kernels[fmtF32][1][3] = mmF32R1P8AVX512
	s.kernels[fmtF32][2][0] = mmF32R2P1AVX512
	s.kernels[fmtF32][2][1] = mmF32R2P2AVX512
	s.kernels[fmtF32][2][2] = mmF32R2P4AVX512
	s.kernels[fmtF32][3][0] = mmF32R3P1AVX512
	s.kernels[fmtF32][3][1] = mmF32R3P2AVX512
	s.kernels[fmtF32][3][2] = mmF32R3P4AVX512
	s.kernels[fmtF32][4][0] = mmF32R4P1AVX512
	s.kernels[fmtF32][4][1] = mmF32R4P2AVX512
	s.kernels[fmtF32][4][2] = mmF32R4P4AVX512
	s.kernels[fmtF32][5][0] = mmF32R5P1AVX512
	s.kernels[fmtF32][5][1] = mmF32R5P2AVX512
	s.kernels[fmtF32][6][0] = mmF32R6P1AVX512
	s.kernels[fmtF32][6][1] = mmF32R6P2AVX512
	s.kernels[fmtF32][7][0] = mmF32R7P1AVX512
	s.kernels[fmtF32][7][1] = mmF32R7P2AVX512
	s.kernels[fmtF32][8][0] = mmF32R8P1AVX512
	s.kernels[fmtF32][8][1] = mmF32R8P2AVX512
	s.kernels[fmtF32][9][0] = mmF32R9P1AVX512
	s.kernels[fmtF32][9][1] = mmF32R9P2AVX512
	s.kernels[fmtF32][10][0] = mmF32R10P1AVX512
	s.kernels[fmtF32][10][1] = mmF32R10P2AVX512
	s.kernels[fmtF32][11][0] = mmF32R11P1AVX512
	s.kernels[fmtF32][11][1] = mmF32R11P2AVX512
	s.kernels[fmtF32][12][0] = mmF32R12P1AVX512
	s.kernels[fmtF32][12][1] = mmF32R12P2AVX512
	s.kernels[fmtI8][1][0] = mmI8R1P1AVX512
	s.kernels[fmtI8][1][1] = mmI8R1P2AVX512
	s.kernels[fmtI8][1][2] = mmI8R1P4AVX512
	s.kernels[fmtI8][1][3] = mmI8R1P8AVX512
	s.kernels[fmtI8][2][0] = mmI8R2P1AVX512
	s.kernels[fmtI8][2][1] = mmI8R2P2AVX512
	s.kernels[fmtI8][2][2] = mmI8R2P4AVX512
	s.kernels[fmtI8][3][0] = mmI8R3P1AVX512
	s.kernels[fmtI8][3][1] = mmI8R3P2AVX512
	s.kernels[fmtI8][3][2] = mmI8R3P4AVX512
	s.kernels[fmtI8][4][0] = mmI8R4P1AVX512
	s.kernels[fmtI8][4][1] = mmI8R4P2AVX512
	s.kernels[fmtI8][4][2] = mmI8R4P4AVX512
	s.kernels[fmtI8][5][0] = mmI8R5P1AVX512
	s.kernels[fmtI8][5][1] = mmI8R5P2AVX512
	s.kernels[fmtI8][6][0] = mmI8R6P1AVX512
	s.kernels[fmtI8][6][1] = mmI8R6P2AVX512
	s.kernels[fmtI8][7][0] = mmI8R7P1AVX512
	s.kernels[fmtI8][7][1] = mmI8R7P2AVX512
	s.kernels[fmtI8][8][0] = mmI8R8P1AVX512
	s.kernels[fmtI8][8][1] = mmI8R8P2AVX512
	s.kernels[fmtI8][9][0] = mmI8R9P1AVX512
	s.kernels[fmtI8][9][1] = mmI8R9P2AVX512
	s.kernels[fmtI8][10][0] = mmI8R10P1AVX512
	s.kernels[fmtI8][10][1] = mmI8R10P2AVX512
	s.kernels[fmtI8][11][0] = mmI8R11P1AVX512
	s.kernels[fmtI8][11][1] = mmI8R11P2AVX512
	s.kernels[fmtI8][12][0] = mmI8R12P1AVX512
	s.kernels[fmtI8][12][1] = mmI8R12P2AVX512
	s.kernels[fmtQ8][1][0] = mmQ8R1P1AVX512
	s.kernels[fmtQ8][1][1] = mmQ8R1P2AVX512
	s.kernels[fmtQ8][1][2] = mmQ8R1P4AVX512
	s.kernels[fmtQ8][2][0] = mmQ8R2P1AVX512
	s.kernels[fmtQ8][2][1] = mmQ8R2P2AVX512
	s.kernels[fmtQ8][3][0] = mmQ8R3P1AVX512
	s.kernels[fmtQ8][4][0] = mmQ8R4P1AVX512
	s.kernels[fmtQ8][5][0] = mmQ8R5P1AVX512
	s.kernels[fmtQ8][6][0] = mmQ8R6P1AVX512
	s.kernels[fmtQ8][7][0] = mmQ8R7P1AVX512
	s.kernels[fmtQ8][8][0] = mmQ8R8P1AVX512
	s.kernels[fmtQ8][9][0] = mmQ8R9P1AVX512
	s.kernels[fmtQ8][10][0] = mmQ8R10P1AVX512
	s.kernels[fmtQ8][11][0] = mmQ8R11P1AVX512
	s.kernels[fmtQ8][12][0] = mmQ8R12P1AVX512
	s.kernels[fmtQ4][1][0] = mmQ4R1P1AVX512
	s.kernels[fmtQ4][1][1] = mmQ4R1P2AVX512
	s.kernels[fmtQ4][1][2] = mmQ4R1P4AVX512
	s.kernels[fmtQ4][2][0] = mmQ4R2P1AVX512
	s.kernels[fmtQ4][2][1] = mmQ4R2P2AVX512
	s.kernels[fmtQ4][3][0] = mmQ4R3P1AVX512
	s.kernels[fmtQ4][4][0] = mmQ4R4P1AVX512
	s.kernels[fmtQ4][5][0] = mmQ4R5P1AVX512
	s.kernels[fmtQ4][6][0] = mmQ4R6P1AVX512
	s.kernels[fmtQ4][7][0] = mmQ4R7P1AVX512
	s.kernels[fmtQ4][8][0] = mmQ4R8P1AVX512
	s.kernels[fmtQ4][9][0] = mmQ4R9P1AVX512
	s.kernels[fmtQ4][10][0] = mmQ4R10P1AVX512
	s.kernels[fmtQ4][11][0] = mmQ4R11P1AVX512
	s.kernels[fmtQ4][12][0] = mmQ4R12P1AVX512
	return s
}

//go:noescape
func mmQ8R1P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R1P2AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R1P4AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R2P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R2P2AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R3P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R4P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R5P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R6P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R7P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R8P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R9P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R10P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R11P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ8R12P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R1P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R1P2AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R1P4AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R2P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R2P2AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R3P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R4P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R5P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R6P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R7P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R8P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R9P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R10P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R11P1AVX512VNNI(a *mmArgs)

//go:noescape
func mmQ4R12P1AVX512VNNI(a *mmArgs)

func mmAVX512VNNI() *mmSet {
	s := &mmSet{maxRows: 12}
	*s = *mmAVX512()
	s.kernels[fmtQ8][1][0] = mmQ8R1P1AVX512VNNI
	s.kernels[fmtQ8][1][1] = mmQ8R1P2AVX512VNNI
	s.kernels[fmtQ8][1][2] = mmQ8R1P4AVX512VNNI
	s.kernels[fmtQ8][2][0] = mmQ8R2P1AVX512VNNI
	s.kernels[fmtQ8][2][1] = mmQ8R2P2AVX512VNNI
	s.kernels[fmtQ8][3][0] = mmQ8R3P1AVX512VNNI
	s.kernels[fmtQ8][4][0] = mmQ8R4P1AVX512VNNI
	s.kernels[fmtQ8][5][0] = mmQ8R5P1AVX512VNNI
	s.kernels[fmtQ8][6][0] = mmQ8R6P1AVX512VNNI
	s.kernels[fmtQ8][7][0] = mmQ8R7P1AVX512VNNI
	s.kernels[fmtQ8][8][0] = mmQ8R8P1AVX512VNNI
	s.kernels[fmtQ8][9][0] = mmQ8R9P1AVX512VNNI
	s.kernels[fmtQ8][10][0] = mmQ8R10P1AVX512VNNI
	s.kernels[fmtQ8][11][0] = mmQ8R11P1AVX512VNNI
	s.kernels[fmtQ8][12][0] = mmQ8R12P1AVX512VNNI
	s.kernels[fmtQ4][1][0] = mmQ4R1P1AVX512VNNI
	s.kernels[fmtQ4][1][1] = mmQ4R1P2AVX512VNNI
	s.kernels[fmtQ4][1][2] = mmQ4R1P4AVX512VNNI
	s.kernels[fmtQ4][2][0] = mmQ4R2P1AVX512VNNI
	s.kernels[fmtQ4][2][1] = mmQ4R2P2AVX512VNNI
	s.kernels[fmtQ4][3][0] = mmQ4R3P1AVX512VNNI
	s.kernels[fmtQ4][4][0] = mmQ4R4P1AVX512VNNI
	s.kernels[fmtQ4][5][0] = mmQ4R5P1AVX512VNNI
	s.kernels[fmtQ4][6][0] = mmQ4R6P1AVX512VNNI
	s.kernels[fmtQ4][7][0] = mmQ4R7P1AVX512VNNI
	s.kernels[fmtQ4][8][0] = mmQ4R8P1AVX512VNNI
	s.kernels[fmtQ4][9][0] = mmQ4R9P1AVX512VNNI
	s.kernels[fmtQ4][10][0] = mmQ4R10P1AVX512VNNI
	s.kernels[fmtQ4][11][0] = mmQ4R11P1AVX512VNNI
	s.kernels[fmtQ4][12][0] = mmQ4R12P1AVX512VNNI
	return s
}
