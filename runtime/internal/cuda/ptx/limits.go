package ptx

// Limits on what a module may declare, checked before memory is taken.
const (
	maxSource   = 16 << 20 // bytes of PTX text
	maxRegs     = 1 << 20  // registers of one .reg declaration
	maxVariable = 1 << 28  // bytes of one variable
	maxStmts    = 1 << 20  // statements of one function, after inlining
	maxCalls    = 1 << 16  // calls that are expanded into one kernel
	maxNesting  = 200      // of braces, operands and calls
	maxBlocks   = 1 << 13  // basic blocks of one kernel
	maxLiveness = 1 << 28  // basic blocks times registers
	maxFile     = 4 << 20  // bytes of a warp's registers and constants
)
