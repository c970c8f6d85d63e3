//go:build cuda && linux

// The functions of the driver, defined in this program: each forwards to the
// table below, which is filled when a driver is opened. So the program starts
// where there is no driver, and a simulated one can stand in for it.
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>

enum {
#define CUDA_ENTRY(name, exported, params, args) at_##name,
  CUDA_ENTRIES_DOOR
  needed,
  before_cu = needed - 1,
  CUDA_ENTRIES_CU
#undef CUDA_ENTRY
  entries
};

static const char *const names[entries] = {
#define CUDA_ENTRY(name, exported, params, args) [at_##name] = exported,
    CUDA_ENTRIES
#undef CUDA_ENTRY
};

static void *table[entries];

#define CUDA_ENTRY(name, exported, params, args)                               \
  CUresult name params {                                                       \
    CUresult(*entry) params = (CUresult(*) params)table[at_##name];            \
    return entry ? entry args : CUDA_ERROR_NOT_FOUND;                          \
  }
CUDA_ENTRIES
#undef CUDA_ENTRY

CUresult cuInit(unsigned int flags) {
  (void)flags;
  return CUDA_SUCCESS;
}

int doorEntries(void) { return entries; }
const char *doorEntryName(int i) { return names[i]; }
int doorEntryNeeded(int i) { return i < needed; }
void *doorEntry(int i) { return table[i]; }
void doorSetEntry(int i, void *function) { table[i] = function; }

int doorLoad(const char *name, char *why, size_t n) {
  // Never closed: the driver does not survive it.
  void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *e = dlerror();
    snprintf(why, n, "%s", e ? e : "unknown");
    return 0;
  }
  for (int i = 0; i < entries; i++) table[i] = dlsym(lib, names[i]);
  return 1;
}

CUresult doorLaunch(CUfunction f, unsigned int gx, unsigned int gy,
                    unsigned int gz, unsigned int bx, unsigned int by,
                    unsigned int bz, unsigned int shared, CUstream q,
                    void *params, size_t n) {
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &n, CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, q, NULL,
                        n ? extra : NULL);
}

CUresult doorLoadModule(CUmodule *m, const void *ptx, char *log, size_t n) {
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  // The size is passed in the pointer itself.
  void *values[] = {log, (void *)n};
  if (n) log[0] = 0;
  CUresult r = cuModuleLoadDataEx(m, ptx, 2, options, values);
  if (n) log[n - 1] = 0;
  return r;
}
