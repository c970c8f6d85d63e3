// A driver for tests: DEVICES fake GPUs with memory on the host, work done at
// once, or no GPU (0). INIT is what cuInit answers. It exports the functions
// under the names the driver has, so it stands for a real libcuda that is
// found by dlopen. VERSION is the API it speaks. FAIL_ALLOC makes cuMemAlloc fail with that code.
#include <cuda.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) CUresult
#ifndef DEVICES
#define DEVICES 0
#endif
#ifndef INIT
#define INIT (DEVICES ? 0 : 100)
#endif
#ifndef VERSION
#define VERSION 12040
#endif

static __thread CUcontext current;
static long launches;
static unsigned char params[4096];
static size_t params_size;
static int refs[8];

API cuInit_(unsigned int f) __asm__("cuInit");
API cuInit_(unsigned int f) { return INIT; }
API cuDriverGetVersion_(int *v) __asm__("cuDriverGetVersion");
API cuDriverGetVersion_(int *v) { *v = VERSION; return 0; }

#define DEF(name, exported, ps) API stub_##name ps __asm__(exported); API stub_##name ps

DEF(cuGetErrorName, "cuGetErrorName", (CUresult e, const char **s)) {
  *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : NULL;
  return *s ? 0 : 1;
}
DEF(cuGetErrorString, "cuGetErrorString", (CUresult e, const char **s)) {
  *s = e == 2 ? "out of memory" : e == 201 ? "invalid device context" : NULL;
  return *s ? 0 : 1;
}
DEF(cuDeviceGetCount, "cuDeviceGetCount", (int *n)) { *n = DEVICES; return 0; }
DEF(cuDeviceGet, "cuDeviceGet", (CUdevice *d, int i)) { *d = i; return i < DEVICES ? 0 : 101; }
DEF(cuDeviceGetName, "cuDeviceGetName", (char *s, int n, CUdevice d)) { strcpy(s, "Stub GPU"); return 0; }
DEF(cuDeviceGetUuid, "cuDeviceGetUuid", (CUuuid *u, CUdevice d)) { memset(u, 0, 16); u->bytes[0] = 0x11 * (d + 1); return 0; }
DEF(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *n, CUdevice d)) { *n = 1 << 30; return 0; }
DEF(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *v, CUdevice_attribute a, CUdevice d)) {
  switch ((int)a) {
  case 75: *v = 12; break;
  case 76: *v = 0; break;
  case 16: *v = 170; break;
  case 13: *v = 2407000; break;
  case 97: *v = 101376; break;
  case 33: *v = 0x41 - d; break;
  case 36: *v = 14001000; break;
  case 37: *v = 512; break;
  case 38: return 1; // unknown to this driver
  default: *v = 0;
  }
  return 0;
}
DEF(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *can, CUdevice d, CUdevice p)) { *can = d < p; return 0; }
DEF(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *c, CUdevice d)) { refs[d]++; *c = (CUcontext)(uintptr_t)(0x1000 + d); return 0; }
DEF(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice d)) { return refs[d]-- > 0 ? 0 : 201; }
DEF(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext c)) { current = c; return 0; }
DEF(cuCtxSynchronize, "cuCtxSynchronize", (void)) { return 0; }
DEF(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext c, unsigned int f)) { static int on; return on++ ? 704 : 0; }
DEF(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *f, size_t *t)) { *f = 1 << 29; *t = 1 << 30; return current ? 0 : 201; }
DEF(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *p, size_t n)) {
  if (!current) return 201;
#ifdef FAIL_ALLOC
  return FAIL_ALLOC;
#endif
  if (n > 1 << 30) return 2;
  return posix_memalign((void **)p, 256, n) ? 2 : 0;
}
DEF(cuMemFree, "cuMemFree_v2", (CUdeviceptr p)) { free((void *)p); return current ? 0 : 201; }
DEF(cuMemHostAlloc, "cuMemHostAlloc", (void **p, size_t n, unsigned int f)) { return posix_memalign(p, 256, n) ? 2 : 0; }
DEF(cuMemFreeHost, "cuMemFreeHost", (void *p)) { free(p); return 0; }
DEF(cuMemHostRegister, "cuMemHostRegister_v2", (void *p, size_t n, unsigned int f)) { return 0; }
DEF(cuMemHostUnregister, "cuMemHostUnregister", (void *p)) { return 0; }
DEF(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr d, const void *s, size_t n, CUstream q)) { memcpy((void *)d, s, n); return 0; }
DEF(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *d, CUdeviceptr s, size_t n, CUstream q)) { memcpy(d, (void *)s, n); return 0; }
DEF(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q)) { memcpy((void *)d, (void *)s, n); return 0; }
DEF(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream q)) {
  if (dc == sc || sc != current) return 1;
  memcpy((void *)d, (void *)s, n);
  return 0;
}
DEF(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr d, unsigned char v, size_t n, CUstream q)) { memset((void *)d, v, n); return 0; }
DEF(cuStreamCreate, "cuStreamCreate", (CUstream *q, unsigned int f)) { static long n; *q = (CUstream)(0x2000 + ++n); return f == 1 ? 0 : 1; }
DEF(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream q)) { return q ? 0 : 400; }
// Not ready at first, then ready, in turns. Stream 0x13 stays in the driver.
DEF(cuStreamQuery, "cuStreamQuery", (CUstream q)) {
  static int n;
  if (q == (CUstream)0x13) sleep(2);
  return n++ % 2 ? 0 : 600;
}
DEF(cuStreamSynchronize, "cuStreamSynchronize", (CUstream q)) { return current ? 0 : 201; }
DEF(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream q, CUevent e, unsigned int f)) { return e ? 0 : 400; }
DEF(cuEventCreate, "cuEventCreate", (CUevent *e, unsigned int f)) { *e = (CUevent)(uintptr_t)(0x3000 + f); return 0; }
DEF(cuEventDestroy, "cuEventDestroy_v2", (CUevent e)) { return e ? 0 : 400; }
DEF(cuEventRecord, "cuEventRecord", (CUevent e, CUstream q)) { return e ? 0 : 400; }
DEF(cuEventQuery, "cuEventQuery", (CUevent e)) { return e ? 0 : 400; }
DEF(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, CUevent a, CUevent b)) { *ms = 1.5f; return a == (CUevent)0x3000 ? 0 : 400; }
DEF(cuModuleLoadDataEx, "cuModuleLoadDataEx", (CUmodule *m, const void *image, unsigned int n, CUjit_option *o, void **v)) {
  if (strncmp(image, ".version", 8)) {
    for (unsigned i = 0; i < n; i++)
      if (o[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(v[i], "ptxas stub, line 1;\n  fatal: no .version\n");
    return 218;
  }
  *m = (CUmodule)0x4000;
  return 0;
}
DEF(cuModuleUnload, "cuModuleUnload", (CUmodule m)) { return m ? 0 : 400; }
DEF(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *f, CUmodule m, const char *s)) { *f = (CUfunction)0x5000; return strcmp(s, "kernel") ? 500 : 0; }
DEF(cuFuncGetAttribute, "cuFuncGetAttribute", (int *v, CUfunction_attribute a, CUfunction f)) { *v = 100 + a; return 0; }
DEF(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction f, CUfunction_attribute a, int v)) { return a == 8 && v <= 101376 ? 0 : 1; }
DEF(cuLaunchKernel, "cuLaunchKernel", (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream q, void **p, void **extra)) {
  if (!gx || bx > 1024) return 1;
  launches++;
  if (extra) {
    params_size = *(size_t *)extra[3];
    if (params_size > sizeof params) return 1;
    // The block behind the first address it holds: a test reads it there.
    CUdeviceptr out;
    memcpy(&out, extra[1], sizeof out);
    if (out && shared == 64) memcpy((void *)out, extra[1], params_size);
  }
  return 0;
}
DEF(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream q, CUstreamCaptureMode m)) { return m == 1 ? 0 : 1; }
DEF(cuStreamEndCapture, "cuStreamEndCapture", (CUstream q, CUgraph *g)) { *g = (CUgraph)0x6000; return 0; }
#ifndef OLD
DEF(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", (CUgraphExec *x, CUgraph g, unsigned long long f)) { *x = (CUgraphExec)0x7000; return 0; }
#endif
DEF(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec x, CUstream q)) { return x == (CUgraphExec)0x7000 ? 0 : 400; }
DEF(cuGraphDestroy, "cuGraphDestroy", (CUgraph g)) { return g ? 0 : 400; }
DEF(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec x)) { return x ? 0 : 400; }
