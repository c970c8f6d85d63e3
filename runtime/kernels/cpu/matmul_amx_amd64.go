// Written by asmgen; do not edit. go test ./runtime/kernels/cpu/asmgen -update

//go:build !purego

package cpu

//go:noescape
func mmTileP1AMX(a *mmArgs)

//go:noescape
func mmTileP4AMX(a *mmArgs)

func peakTDPBF16PS(n int)

func mmAMX() *mmSet {
	s := mmAVX512VNNI()
	for r := 1; r <= amxRows; r++ {
		s.kernels[fmtTile][r][0] = mmTileP1AMX
		s.kernels[fmtTile][r][2] = mmTileP4AMX
	}
	return s
}
