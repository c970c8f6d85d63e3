// What the Go files of this package call: the table of the driver's functions
// and a few calls that gorgonia.org/cu has no use for, or no cheap form of.
#ifndef INFER_SHIM_H
#define INFER_SHIM_H

#include <cuda.h>

#pragma GCC visibility push(hidden)

// Number of entries, the driver's name of entry i, and whether it is needed
// by the door (1) or only declared for gorgonia.org/cu (0).
int doorEntries(void);
const char *doorEntryName(int i);
int doorEntryNeeded(int i);

// The function behind entry i; NULL when there is none. A call to an entry
// without function gives CUDA_ERROR_NOT_FOUND.
void *doorEntry(int i);
void doorSetEntry(int i, void *function);

// Fills the table from a driver library that dlopen finds by this name.
// Returns 0 when it cannot be loaded and writes why.
int doorLoad(const char *name, char *why, size_t n);

// One launch with a packed parameter block of n bytes.
CUresult doorLaunch(CUfunction f, unsigned int gx, unsigned int gy,
                    unsigned int gz, unsigned int bx, unsigned int by,
                    unsigned int bz, unsigned int shared, CUstream q,
                    void *params, size_t n);

// Loads PTX text (zero-terminated) with the compiler's complaints in log.
CUresult doorLoadModule(CUmodule *m, const void *ptx, char *log, size_t n);

#pragma GCC visibility pop

#endif
