package ptx

// typ is a PTX fundamental type. Registers are stored by width: 8-, 16- and
// 32-bit registers in 32-bit lanes (zero-extended), 64-bit ones in 64-bit
// lanes, predicates as one bit per lane.
type typ uint8

const (
	tNone typ = iota
	tPred
	tB8
	tB16
	tB32
	tB64
	tB128
	tU8
	tU16
	tU32
	tU64
	tS8
	tS16
	tS32
	tS64
	tF16
	tF16x2
	tBF16
	tBF16x2
	tTF32
	tF32
	tF64
	tE4M3
	tE5M2
	tE4M3x2
	tE5M2x2
	tU16x2
	tS16x2
)

var typeNames = map[string]typ{
	"pred": tPred, "b8": tB8, "b16": tB16, "b32": tB32, "b64": tB64, "b128": tB128,
	"u8": tU8, "u16": tU16, "u32": tU32, "u64": tU64,
	"s8": tS8, "s16": tS16, "s32": tS32, "s64": tS64,
	"f16": tF16, "f16x2": tF16x2, "bf16": tBF16, "bf16x2": tBF16x2,
	"tf32": tTF32, "f32": tF32, "f64": tF64,
	"e4m3": tE4M3, "e5m2": tE5M2, "e4m3x2": tE4M3x2, "e5m2x2": tE5M2x2,
	"u16x2": tU16x2, "s16x2": tS16x2,
}

var typeBytes = [...]int{
	tPred: 1, tB8: 1, tU8: 1, tS8: 1, tE4M3: 1, tE5M2: 1,
	tB16: 2, tU16: 2, tS16: 2, tF16: 2, tBF16: 2, tE4M3x2: 2, tE5M2x2: 2,
	tB32: 4, tU32: 4, tS32: 4, tF32: 4, tTF32: 4, tF16x2: 4, tBF16x2: 4, tU16x2: 4, tS16x2: 4,
	tB64: 8, tU64: 8, tS64: 8, tF64: 8, tB128: 16,
}

func (t typ) String() string {
	for name, v := range typeNames {
		if v == t {
			return name
		}
	}
	return "none"
}

// size is the type's width in bytes; 0 for no type.
func (t typ) size() int { return typeBytes[t] }

// wide says whether registers of the type live in 64-bit lanes.
func (t typ) wide() bool { return t.size() == 8 }

func (t typ) signed() bool { return t >= tS8 && t <= tS64 }

// float says whether arithmetic on the type is floating point.
func (t typ) float() bool { return t >= tF16 && t <= tE5M2x2 }

// integer says whether the type is an integer or untyped bits.
func (t typ) integer() bool { return t >= tB8 && t <= tS64 }

// half says whether the type holds 16-bit floats, one or two of them.
func (t typ) half() bool { return t >= tF16 && t <= tBF16x2 }

// space is a PTX state space.
type space uint8

const (
	spGeneric space = iota
	spGlobal
	spShared
	spLocal
	spConst
	spParam
)

var spaceNames = map[string]space{
	"global": spGlobal, "shared": spShared, "shared::cta": spShared, "local": spLocal,
	"const": spConst, "param": spParam, "param::entry": spParam, "param::func": spParam,
}

func (s space) String() string {
	return [...]string{"generic", "global", "shared", "local", "const", "param"}[s]
}
