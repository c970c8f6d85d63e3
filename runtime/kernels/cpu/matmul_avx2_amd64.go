// Written by asmgen; do not edit. go test ./runtime/kernels/cpu/asmgen -update

//go:build !purego

package cpu

//go:noescape
func mmBF16R1P1AVX2(a *mmArgs)

//go:noescape
func mmBF16R1P2AVX2(a *mmArgs)

//go:noescape
func mmBF16R1P4AVX2(a *mmArgs)

//go:noescape
func mmBF16R2P1AVX2(a *mmArgs)

//go:noescape
func mmBF16R2P2AVX2(a *mmArgs)

//go:noescape
func mmBF16R3P1AVX2(a *mmArgs)

//go:noescape
func mmBF16R3P2AVX2(a *mmArgs)

//go:noescape
func mmBF16R4P1AVX2(a *mmArgs)

//go:noescape
func mmBF16R5P1AVX2(a *mmArgs)

//go:noescape
func mmBF16R6P1AVX2(a *mmArgs)

//go:noescape
func mmF16R1P1AVX2(a *mmArgs)

//go:noescape
func mmF16R1P2AVX2(a *mmArgs)

//go:noescape
func mmF16R1P4AVX2(a *mmArgs)

//go:noescape
func mmF16R2P1AVX2(a *mmArgs)

//go:noescape
func mmF16R2P2AVX2(a *mmArgs)

//go:noescape
func mmF16R3P1AVX2(a *mmArgs)

//go:noescape
func mmF16R3P2AVX2(a *mmArgs)

//go:noescape
func mmF16R4P1AVX2(a *mmArgs)

//go:noescape
func mmF16R5P1AVX2(a *mmArgs)

//go:noescape
func mmF16R6P1AVX2(a *mmArgs)

//go:noescape
func mmF32R1P1AVX2(a *mmArgs)

//go:noescape
func mmF32R1P2AVX2(a *mmArgs)

//go:noescape
func mmF32R1P4AVX2(a *mmArgs)

//go:noescape
func mmF32R2P1AVX2(a *mmArgs)

//go:noescape
func mmF32R2P2AVX2(a *mmArgs)

//go:noescape
func mmF32R3P1AVX2(a *mmArgs)

//go:noescape
func mmF32R3P2AVX2(a *mmArgs)

//go:noescape
func mmF32R4P1AVX2(a *mmArgs)

//go:noescape
func mmF32R5P1AVX2(a *mmArgs)

//go:noescape
func mmF32R6P1AVX2(a *mmArgs)

//go:noescape
func mmI8R1P1AVX2(a *mmArgs)

//go:noescape
func mmI8R1P2AVX2(a *mmArgs)

//go:noescape
func mmI8R1P4AVX2(a *mmArgs)

//go:noescape
func mmI8R2P1AVX2(a *mmArgs)

//go:noescape
func mmI8R2P2AVX2(a *mmArgs)

//go:noescape
func mmI8R3P1AVX2(a *mmArgs)

//go:noescape
func mmI8R3P2AVX2(a *mmArgs)

//go:noescape
func mmI8R4P1AVX2(a *mmArgs)

//go:noescape
func mmI8R5P1AVX2(a *mmArgs)

//go:noescape
func mmI8R6P1AVX2(a *mmArgs)

//go:noescape
func mmQ8R1P1AVX2(a *mmArgs)

//go:noescape
func mmQ8R1P2AVX2(a *mmArgs)

//go:noescape
func mmQ8R1P4AVX2(a *mmArgs)

//go:noescape
func mmQ8R2P1AVX2(a *mmArgs)

//go:noescape
func mmQ8R2P2AVX2(a *mmArgs)

//go:noescape
func mmQ8R3P1AVX2(a *mmArgs)

//go:noescape
func mmQ8R4P1AVX2(a *mmArgs)

//go:noescape
func mmQ8R5P1AVX2(a *mmArgs)

//go:noescape
func mmQ8R6P1AVX2(a *mmArgs)

//go:noescape
func mmQ4R1P1AVX2(a *mmArgs)

//go:noescape
func mmQ4R1P2AVX2(a *mmArgs)

//go:noescape
func mmQ4R1P4AVX2(a *mmArgs)

//go:noescape
func mmQ4R2P1AVX2(a *mmArgs)

//go:noescape
func mmQ4R2P2AVX2(a *mmArgs)

//go:noescape
func mmQ4R3P1AVX2(a *mmArgs)

//go:noescape
func mmQ4R4P1AVX2(a *mmArgs)

//go:noescape
func mmQ4R5P1AVX2(a *mmArgs)

//go:noescape
func mmQ4R6P1AVX2(a *mmArgs)

func mmAVX2() *mmSet {
	s := &mmSet{maxRows: 6}
	s.kernels[fmtBF16][1][0] = mmBF16R1P1AVX2
	s.kernels[fmtBF16][1][1] = mmBF16R1P2AVX2
	s.kernels[fmtBF16][1][2] = mmBF16R1P4AVX2
	s.kernels[fmtBF16][2][0] = mmBF16R2P1AVX2
	s.kernels[fmtBF16][2][1] = mmBF16R2P2AVX2
	s.kernels[fmtBF16][3][0] = mmBF16R3P1AVX2
	s.kernels[fmtBF16][3][1] = mmBF16R3P2AVX2
	s.kernels[fmtBF16][4][0] = mmBF16R4P1AVX2
	s.kernels[fmtBF16][5][0] = mmBF16R5P1AVX2
	s.kernels[fmtBF16][6][0] = mmBF16R6P1AVX2
	s.kernels[fmtF16][1][0] = mmF16R1P1AVX2
	s.kernels[fmtF16][1][1] = mmF16R1P2AVX2
	s.kernels[fmtF16][1][2] = mmF16R1P4AVX2
	s.kernels[fmtF16][2][0] = mmF16R2P1AVX2
	s.kernels[fmtF16][2][1] = mmF16R2P2AVX2
	s.kernels[fmtF16][3][0] = mmF16R3P1AVX2
	s.kernels[fmtF16][3][1] = mmF16R3P2AVX2
	s.kernels[fmtF16][4][0] = mmF16R4P1AVX2
	s.kernels[fmtF16][5][0] = mmF16R5P1AVX2
	s.kernels[fmtF16][6][0] = mmF16R6P1AVX2
	s.kernels[fmtF32][1][0] = mmF32R1P1AVX2
	s.kernels[fmtF32][1][1] = mmF32R1P2AVX2
	s.kernels[fmtF32][1][2] = mmF32R1P4AVX2
	s.kernels[fmtF32][2][0] = mmF32R2P1AVX2
	s.kernels[fmtF32][2][1] = mmF32R2P2AVX2
	s.kernels[fmtF32][3][0] = mmF32R3P1AVX2
	s.kernels[fmtF32][3][1] = mmF32R3P2AVX2
	s.kernels[fmtF32][4][0] = mmF32R4P1AVX2
	s.kernels[fmtF32][5][0] = mmF32R5P1AVX2
	s.kernels[fmtF32][6][0] = mmF32R6P1AVX2
	s.kernels[fmtI8][1][0] = mmI8R1P1AVX2
	s.kernels[fmtI8][1][1] = mmI8R1P2AVX2
	s.kernels[fmtI8][1][2] = mmI8R1P4AVX2
	s.kernels[fmtI8][2][0] = mmI8R2P1AVX2
	s.kernels[fmtI8][2][1] = mmI8R2P2AVX2
	s.kernels[fmtI8][3][0] = mmI8R3P1AVX2
	s.kernels[fmtI8][3][1] = mmI8R3P2AVX2
	s.kernels[fmtI8][4][0] = mmI8R4P1AVX2
	s.kernels[fmtI8][5][0] = mmI8R5P1AVX2
	s.kernels[fmtI8][6][0] = mmI8R6P1AVX2
	s.kernels[fmtQ8][1][0] = mmQ8R1P1AVX2
	s.kernels[fmtQ8][1][1] = mmQ8R1P2AVX2
	s.kernels[fmtQ8][1][2] = mmQ8R1P4AVX2
	s.kernels[fmtQ8][2][0] = mmQ8R2P1AVX2
	s.kernels[fmtQ8][2][1] = mmQ8R2P2AVX2
	s.kernels[fmtQ8][3][0] = mmQ8R3P1AVX2
	s.kernels[fmtQ8][4][0] = mmQ8R4P1AVX2
	s.kernels[fmtQ8][5][0] = mmQ8R5P1AVX2
	s.kernels[fmtQ8][6][0] = mmQ8R6P1AVX2
	s.kernels[fmtQ4][1][0] = mmQ4R1P1AVX2
	s.kernels[fmtQ4][1][1] = mmQ4R1P2AVX2
	s.kernels[fmtQ4][1][2] = mmQ4R1P4AVX2
	s.kernels[fmtQ4][2][0] = mmQ4R2P1AVX2
	s.kernels[fmtQ4][2][1] = mmQ4R2P2AVX2
	s.kernels[fmtQ4][3][0] = mmQ4R3P1AVX2
	s.kernels[fmtQ4][4][0] = mmQ4R4P1AVX2
	s.kernels[fmtQ4][5][0] = mmQ4R5P1AVX2
	s.kernels[fmtQ4][6][0] = mmQ4R6P1AVX2
	return s
}

//go:noescape
func mmQ8R1P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R1P2AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R1P4AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R2P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R2P2AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R3P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R4P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R5P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ8R6P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R1P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R1P2AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R1P4AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R2P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R2P2AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R3P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R4P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R5P1AVXVNNI(a *mmArgs)

//go:noescape
func mmQ4R6P1AVXVNNI(a *mmArgs)

func mmAVXVNNI() *mmSet {
	s := &mmSet{maxRows: 6}
	*s = *mmAVX2()
	s.kernels[fmtQ8][1][0] = mmQ8R1P1AVXVNNI
	s.kernels[fmtQ8][1][1] = mmQ8R1P2AVXVNNI
	s.kernels[fmtQ8][1][2] = mmQ8R1P4AVXVNNI
	s.kernels[fmtQ8][2][0] = mmQ8R2P1AVXVNNI
	s.kernels[fmtQ8][2][1] = mmQ8R2P2AVXVNNI
	s.kernels[fmtQ8][3][0] = mmQ8R3P1AVXVNNI
	s.kernels[fmtQ8][4][0] = mmQ8R4P1AVXVNNI
	s.kernels[fmtQ8][5][0] = mmQ8R5P1AVXVNNI
	s.kernels[fmtQ8][6][0] = mmQ8R6P1AVXVNNI
	s.kernels[fmtQ4][1][0] = mmQ4R1P1AVXVNNI
	s.kernels[fmtQ4][1][1] = mmQ4R1P2AVXVNNI
	s.kernels[fmtQ4][1][2] = mmQ4R1P4AVXVNNI
	s.kernels[fmtQ4][2][0] = mmQ4R2P1AVXVNNI
	s.kernels[fmtQ4][2][1] = mmQ4R2P2AVXVNNI
	s.kernels[fmtQ4][3][0] = mmQ4R3P1AVXVNNI
	s.kernels[fmtQ4][4][0] = mmQ4R4P1AVXVNNI
	s.kernels[fmtQ4][5][0] = mmQ4R5P1AVXVNNI
	s.kernels[fmtQ4][6][0] = mmQ4R6P1AVXVNNI
	return s
}
