package cuda

import (
	"embed"
	"io/fs"
)

// compiled are the modules that ship: src/*.cu as compile.sh compiled them.
//
//go:embed ptx
var compiled embed.FS

// Module is the PTX text of a source file, by its name without ".cu"; empty
// if there is none.
func Module(name string) string {
	b, err := fs.ReadFile(compiled, "ptx/"+name+".ptx")
	if err != nil {
		return ""
	}
	return string(b)
}
