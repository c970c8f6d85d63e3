// Every function of the driver that this program knows: its name here, the
// name under which the driver exports it (with the version that fits the
// declaration here), its parameters and how to pass them on.
//
// The version matters: cuMemAlloc without a suffix is a function of another
// time that takes 32-bit sizes. cuGraphAddKernelNode stays on the first
// version, since CUDA_KERNEL_NODE_PARAMS grew in the second.
//
// The first block is what the door itself calls; the second is what only
// gorgonia.org/cu refers to, so that it links.
#define CUDA_ENTRIES CUDA_ENTRIES_DOOR CUDA_ENTRIES_CU

#define CUDA_ENTRIES_DOOR \
  CUDA_ENTRY(doorInit, "cuInit", (unsigned int flags), (flags)) \
  CUDA_ENTRY(cuDriverGetVersion, "cuDriverGetVersion", (int *v), (v)) \
  CUDA_ENTRY(cuGetErrorName, "cuGetErrorName", (CUresult e, const char **s), (e, s)) \
  CUDA_ENTRY(cuGetErrorString, "cuGetErrorString", (CUresult e, const char **s), (e, s)) \
  CUDA_ENTRY(cuDeviceGet, "cuDeviceGet", (CUdevice *d, int i), (d, i)) \
  CUDA_ENTRY(cuDeviceGetCount, "cuDeviceGetCount", (int *n), (n)) \
  CUDA_ENTRY(cuDeviceGetName, "cuDeviceGetName", (char *s, int n, CUdevice d), (s, n, d)) \
  CUDA_ENTRY(cuDeviceGetUuid, "cuDeviceGetUuid", (CUuuid *u, CUdevice d), (u, d)) \
  CUDA_ENTRY(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *n, CUdevice d), (n, d)) \
  CUDA_ENTRY(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *v, CUdevice_attribute a, CUdevice d), (v, a, d)) \
  CUDA_ENTRY(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *can, CUdevice d, CUdevice peer), (can, d, peer)) \
  CUDA_ENTRY(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *c, CUdevice d), (c, d)) \
  CUDA_ENTRY(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice d), (d)) \
  CUDA_ENTRY(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext c), (c)) \
  CUDA_ENTRY(cuCtxSynchronize, "cuCtxSynchronize", (void), ()) \
  CUDA_ENTRY(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned int flags), (peer, flags)) \
  CUDA_ENTRY(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total), (free, total)) \
  CUDA_ENTRY(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *p, size_t n), (p, n)) \
  CUDA_ENTRY(cuMemFree, "cuMemFree_v2", (CUdeviceptr p), (p)) \
  CUDA_ENTRY(cuMemHostAlloc, "cuMemHostAlloc", (void **p, size_t n, unsigned int flags), (p, n, flags)) \
  CUDA_ENTRY(cuMemFreeHost, "cuMemFreeHost", (void *p), (p)) \
  CUDA_ENTRY(cuMemHostRegister, "cuMemHostRegister_v2", (void *p, size_t n, unsigned int flags), (p, n, flags)) \
  CUDA_ENTRY(cuMemHostUnregister, "cuMemHostUnregister", (void *p), (p)) \
  CUDA_ENTRY(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr d, const void *s, size_t n, CUstream q), (d, s, n, q)) \
  CUDA_ENTRY(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q)) \
  CUDA_ENTRY(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q)) \
  CUDA_ENTRY(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream q), (d, dc, s, sc, n, q)) \
  CUDA_ENTRY(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr d, unsigned char v, size_t n, CUstream q), (d, v, n, q)) \
  CUDA_ENTRY(cuStreamCreate, "cuStreamCreate", (CUstream *q, unsigned int flags), (q, flags)) \
  CUDA_ENTRY(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream q), (q)) \
  CUDA_ENTRY(cuStreamQuery, "cuStreamQuery", (CUstream q), (q)) \
  CUDA_ENTRY(cuStreamSynchronize, "cuStreamSynchronize", (CUstream q), (q)) \
  CUDA_ENTRY(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream q, CUevent e, unsigned int flags), (q, e, flags)) \
  CUDA_ENTRY(cuEventCreate, "cuEventCreate", (CUevent *e, unsigned int flags), (e, flags)) \
  CUDA_ENTRY(cuEventDestroy, "cuEventDestroy_v2", (CUevent e), (e)) \
  CUDA_ENTRY(cuEventRecord, "cuEventRecord", (CUevent e, CUstream q), (e, q)) \
  CUDA_ENTRY(cuEventQuery, "cuEventQuery", (CUevent e), (e)) \
  CUDA_ENTRY(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, CUevent a, CUevent b), (ms, a, b)) \
  CUDA_ENTRY(cuModuleLoadDataEx, "cuModuleLoadDataEx", (CUmodule *m, const void *image, unsigned int n, CUjit_option *o, void **v), (m, image, n, o, v)) \
  CUDA_ENTRY(cuModuleUnload, "cuModuleUnload", (CUmodule m), (m)) \
  CUDA_ENTRY(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *f, CUmodule m, const char *s), (f, m, s)) \
  CUDA_ENTRY(cuFuncGetAttribute, "cuFuncGetAttribute", (int *v, CUfunction_attribute a, CUfunction f), (v, a, f)) \
  CUDA_ENTRY(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction f, CUfunction_attribute a, int v), (f, a, v)) \
  CUDA_ENTRY(cuLaunchKernel, "cuLaunchKernel", (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream q, void **params, void **extra), (f, gx, gy, gz, bx, by, bz, shared, q, params, extra)) \
  CUDA_ENTRY(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream q, CUstreamCaptureMode mode), (q, mode)) \
  CUDA_ENTRY(cuStreamEndCapture, "cuStreamEndCapture", (CUstream q, CUgraph *g), (q, g)) \
  CUDA_ENTRY(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", (CUgraphExec *x, CUgraph g, unsigned long long flags), (x, g, flags)) \
  CUDA_ENTRY(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec x, CUstream q), (x, q)) \
  CUDA_ENTRY(cuGraphDestroy, "cuGraphDestroy", (CUgraph g), (g)) \
  CUDA_ENTRY(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec x), (x))

#define CUDA_ENTRIES_CU \
  CUDA_ENTRY(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", (int *v, CUdevice_P2PAttribute a, CUdevice s, CUdevice d), (v, a, s, d)) \
  CUDA_ENTRY(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", (CUdevice d, unsigned int *flags, int *active), (d, flags, active)) \
  CUDA_ENTRY(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2", (CUdevice d), (d)) \
  CUDA_ENTRY(cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", (CUdevice d, unsigned int flags), (d, flags)) \
  CUDA_ENTRY(cuCtxCreate, "cuCtxCreate_v2", (CUcontext *c, unsigned int flags, CUdevice d), (c, flags, d)) \
  CUDA_ENTRY(cuCtxDestroy, "cuCtxDestroy_v2", (CUcontext c), (c)) \
  CUDA_ENTRY(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext c), (c)) \
  CUDA_ENTRY(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *c), (c)) \
  CUDA_ENTRY(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext *c), (c)) \
  CUDA_ENTRY(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice *d), (d)) \
  CUDA_ENTRY(cuCtxGetFlags, "cuCtxGetFlags", (unsigned int *flags), (flags)) \
  CUDA_ENTRY(cuCtxGetApiVersion, "cuCtxGetApiVersion", (CUcontext c, unsigned int *v), (c, v)) \
  CUDA_ENTRY(cuCtxGetLimit, "cuCtxGetLimit", (size_t *v, CUlimit l), (v, l)) \
  CUDA_ENTRY(cuCtxSetLimit, "cuCtxSetLimit", (CUlimit l, size_t v), (l, v)) \
  CUDA_ENTRY(cuCtxGetCacheConfig, "cuCtxGetCacheConfig", (CUfunc_cache *c), (c)) \
  CUDA_ENTRY(cuCtxSetCacheConfig, "cuCtxSetCacheConfig", (CUfunc_cache c), (c)) \
  CUDA_ENTRY(cuCtxGetSharedMemConfig, "cuCtxGetSharedMemConfig", (CUsharedconfig *c), (c)) \
  CUDA_ENTRY(cuCtxSetSharedMemConfig, "cuCtxSetSharedMemConfig", (CUsharedconfig c), (c)) \
  CUDA_ENTRY(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *least, int *greatest), (least, greatest)) \
  CUDA_ENTRY(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", (CUcontext peer), (peer)) \
  CUDA_ENTRY(cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache", (void), ()) \
  CUDA_ENTRY(cuModuleLoad, "cuModuleLoad", (CUmodule *m, const char *file), (m, file)) \
  CUDA_ENTRY(cuModuleLoadData, "cuModuleLoadData", (CUmodule *m, const void *image), (m, image)) \
  CUDA_ENTRY(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", (CUmodule *m, const void *image), (m, image)) \
  CUDA_ENTRY(cuModuleGetGlobal, "cuModuleGetGlobal_v2", (CUdeviceptr *p, size_t *n, CUmodule m, const char *s), (p, n, m, s)) \
  CUDA_ENTRY(cuModuleGetTexRef, "cuModuleGetTexRef", (CUtexref *t, CUmodule m, const char *s), (t, m, s)) \
  CUDA_ENTRY(cuModuleGetSurfRef, "cuModuleGetSurfRef", (CUsurfref *t, CUmodule m, const char *s), (t, m, s)) \
  CUDA_ENTRY(cuLinkCreate, "cuLinkCreate_v2", (unsigned int n, CUjit_option *o, void **v, CUlinkState *l), (n, o, v, l)) \
  CUDA_ENTRY(cuLinkAddData, "cuLinkAddData_v2", (CUlinkState l, CUjitInputType t, void *data, size_t size, const char *name, unsigned int n, CUjit_option *o, void **v), (l, t, data, size, name, n, o, v)) \
  CUDA_ENTRY(cuLinkAddFile, "cuLinkAddFile_v2", (CUlinkState l, CUjitInputType t, const char *file, unsigned int n, CUjit_option *o, void **v), (l, t, file, n, o, v)) \
  CUDA_ENTRY(cuLinkComplete, "cuLinkComplete", (CUlinkState l, void **cubin, size_t *size), (l, cubin, size)) \
  CUDA_ENTRY(cuLinkDestroy, "cuLinkDestroy", (CUlinkState l), (l)) \
  CUDA_ENTRY(cuMemAllocPitch, "cuMemAllocPitch_v2", (CUdeviceptr *p, size_t *pitch, size_t w, size_t h, unsigned int e), (p, pitch, w, h, e)) \
  CUDA_ENTRY(cuMemAllocManaged, "cuMemAllocManaged", (CUdeviceptr *p, size_t n, unsigned int flags), (p, n, flags)) \
  CUDA_ENTRY(cuMemGetAddressRange, "cuMemGetAddressRange_v2", (CUdeviceptr *base, size_t *n, CUdeviceptr p), (base, n, p)) \
  CUDA_ENTRY(cuMemAdvise, "cuMemAdvise", (CUdeviceptr p, size_t n, CUmem_advise a, CUdevice d), (p, n, a, d)) \
  CUDA_ENTRY(cuMemPrefetchAsync, "cuMemPrefetchAsync", (CUdeviceptr p, size_t n, CUdevice d, CUstream q), (p, n, d, q)) \
  CUDA_ENTRY(cuPointerGetAttribute, "cuPointerGetAttribute", (void *v, CUpointer_attribute a, CUdeviceptr p), (v, a, p)) \
  CUDA_ENTRY(cuPointerSetAttribute, "cuPointerSetAttribute", (const void *v, CUpointer_attribute a, CUdeviceptr p), (v, a, p)) \
  CUDA_ENTRY(cuMemcpy, "cuMemcpy", (CUdeviceptr d, CUdeviceptr s, size_t n), (d, s, n)) \
  CUDA_ENTRY(cuMemcpyAsync, "cuMemcpyAsync", (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q)) \
  CUDA_ENTRY(cuMemcpyPeer, "cuMemcpyPeer", (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n), (d, dc, s, sc, n)) \
  CUDA_ENTRY(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr d, const void *s, size_t n), (d, s, n)) \
  CUDA_ENTRY(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *d, CUdeviceptr s, size_t n), (d, s, n)) \
  CUDA_ENTRY(cuMemcpyDtoD, "cuMemcpyDtoD_v2", (CUdeviceptr d, CUdeviceptr s, size_t n), (d, s, n)) \
  CUDA_ENTRY(cuMemcpyDtoA, "cuMemcpyDtoA_v2", (CUarray d, size_t off, CUdeviceptr s, size_t n), (d, off, s, n)) \
  CUDA_ENTRY(cuMemcpyAtoD, "cuMemcpyAtoD_v2", (CUdeviceptr d, CUarray s, size_t off, size_t n), (d, s, off, n)) \
  CUDA_ENTRY(cuMemcpyHtoA, "cuMemcpyHtoA_v2", (CUarray d, size_t off, const void *s, size_t n), (d, off, s, n)) \
  CUDA_ENTRY(cuMemcpyAtoH, "cuMemcpyAtoH_v2", (void *d, CUarray s, size_t off, size_t n), (d, s, off, n)) \
  CUDA_ENTRY(cuMemcpyAtoA, "cuMemcpyAtoA_v2", (CUarray d, size_t doff, CUarray s, size_t soff, size_t n), (d, doff, s, soff, n)) \
  CUDA_ENTRY(cuMemcpyHtoAAsync, "cuMemcpyHtoAAsync_v2", (CUarray d, size_t off, const void *s, size_t n, CUstream q), (d, off, s, n, q)) \
  CUDA_ENTRY(cuMemcpyAtoHAsync, "cuMemcpyAtoHAsync_v2", (void *d, CUarray s, size_t off, size_t n, CUstream q), (d, s, off, n, q)) \
  CUDA_ENTRY(cuMemcpy2D, "cuMemcpy2D_v2", (const CUDA_MEMCPY2D *c), (c)) \
  CUDA_ENTRY(cuMemcpy2DUnaligned, "cuMemcpy2DUnaligned_v2", (const CUDA_MEMCPY2D *c), (c)) \
  CUDA_ENTRY(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2", (const CUDA_MEMCPY2D *c, CUstream q), (c, q)) \
  CUDA_ENTRY(cuMemcpy3D, "cuMemcpy3D_v2", (const CUDA_MEMCPY3D *c), (c)) \
  CUDA_ENTRY(cuMemcpy3DAsync, "cuMemcpy3DAsync_v2", (const CUDA_MEMCPY3D *c, CUstream q), (c, q)) \
  CUDA_ENTRY(cuMemcpy3DPeer, "cuMemcpy3DPeer", (const CUDA_MEMCPY3D_PEER *c), (c)) \
  CUDA_ENTRY(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", (const CUDA_MEMCPY3D_PEER *c, CUstream q), (c, q)) \
  CUDA_ENTRY(cuMemsetD8, "cuMemsetD8_v2", (CUdeviceptr d, unsigned char v, size_t n), (d, v, n)) \
  CUDA_ENTRY(cuMemsetD16, "cuMemsetD16_v2", (CUdeviceptr d, unsigned short v, size_t n), (d, v, n)) \
  CUDA_ENTRY(cuMemsetD32, "cuMemsetD32_v2", (CUdeviceptr d, unsigned int v, size_t n), (d, v, n)) \
  CUDA_ENTRY(cuMemsetD2D8, "cuMemsetD2D8_v2", (CUdeviceptr d, size_t pitch, unsigned char v, size_t w, size_t h), (d, pitch, v, w, h)) \
  CUDA_ENTRY(cuMemsetD2D16, "cuMemsetD2D16_v2", (CUdeviceptr d, size_t pitch, unsigned short v, size_t w, size_t h), (d, pitch, v, w, h)) \
  CUDA_ENTRY(cuMemsetD2D32, "cuMemsetD2D32_v2", (CUdeviceptr d, size_t pitch, unsigned int v, size_t w, size_t h), (d, pitch, v, w, h)) \
  CUDA_ENTRY(cuMemsetD16Async, "cuMemsetD16Async", (CUdeviceptr d, unsigned short v, size_t n, CUstream q), (d, v, n, q)) \
  CUDA_ENTRY(cuMemsetD32Async, "cuMemsetD32Async", (CUdeviceptr d, unsigned int v, size_t n, CUstream q), (d, v, n, q)) \
  CUDA_ENTRY(cuMemsetD2D8Async, "cuMemsetD2D8Async", (CUdeviceptr d, size_t pitch, unsigned char v, size_t w, size_t h, CUstream q), (d, pitch, v, w, h, q)) \
  CUDA_ENTRY(cuMemsetD2D16Async, "cuMemsetD2D16Async", (CUdeviceptr d, size_t pitch, unsigned short v, size_t w, size_t h, CUstream q), (d, pitch, v, w, h, q)) \
  CUDA_ENTRY(cuMemsetD2D32Async, "cuMemsetD2D32Async", (CUdeviceptr d, size_t pitch, unsigned int v, size_t w, size_t h, CUstream q), (d, pitch, v, w, h, q)) \
  CUDA_ENTRY(cuArrayCreate, "cuArrayCreate_v2", (CUarray *a, const CUDA_ARRAY_DESCRIPTOR *d), (a, d)) \
  CUDA_ENTRY(cuArrayGetDescriptor, "cuArrayGetDescriptor_v2", (CUDA_ARRAY_DESCRIPTOR *d, CUarray a), (d, a)) \
  CUDA_ENTRY(cuArrayDestroy, "cuArrayDestroy", (CUarray a), (a)) \
  CUDA_ENTRY(cuArray3DCreate, "cuArray3DCreate_v2", (CUarray *a, const CUDA_ARRAY3D_DESCRIPTOR *d), (a, d)) \
  CUDA_ENTRY(cuArray3DGetDescriptor, "cuArray3DGetDescriptor_v2", (CUDA_ARRAY3D_DESCRIPTOR *d, CUarray a), (d, a)) \
  CUDA_ENTRY(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", (CUstream *q, unsigned int flags, int priority), (q, flags, priority)) \
  CUDA_ENTRY(cuStreamGetPriority, "cuStreamGetPriority", (CUstream q, int *priority), (q, priority)) \
  CUDA_ENTRY(cuStreamGetFlags, "cuStreamGetFlags", (CUstream q, unsigned int *flags), (q, flags)) \
  CUDA_ENTRY(cuStreamAttachMemAsync, "cuStreamAttachMemAsync", (CUstream q, CUdeviceptr p, size_t n, unsigned int flags), (q, p, n, flags)) \
  CUDA_ENTRY(cuStreamWaitValue32, "cuStreamWaitValue32_v2", (CUstream q, CUdeviceptr p, cuuint32_t v, unsigned int flags), (q, p, v, flags)) \
  CUDA_ENTRY(cuStreamWriteValue32, "cuStreamWriteValue32_v2", (CUstream q, CUdeviceptr p, cuuint32_t v, unsigned int flags), (q, p, v, flags)) \
  CUDA_ENTRY(cuEventSynchronize, "cuEventSynchronize", (CUevent e), (e)) \
  CUDA_ENTRY(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", (CUfunction f, CUfunc_cache c), (f, c)) \
  CUDA_ENTRY(cuFuncSetSharedMemConfig, "cuFuncSetSharedMemConfig", (CUfunction f, CUsharedconfig c), (f, c)) \
  CUDA_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *n, CUfunction f, int block, size_t shared), (n, f, block, shared)) \
  CUDA_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (int *n, CUfunction f, int block, size_t shared, unsigned int flags), (n, f, block, shared, flags)) \
  CUDA_ENTRY(cuGraphCreate, "cuGraphCreate", (CUgraph *g, unsigned int flags), (g, flags)) \
  CUDA_ENTRY(cuGraphClone, "cuGraphClone", (CUgraph *g, CUgraph of), (g, of)) \
  CUDA_ENTRY(cuGraphAddDependencies, "cuGraphAddDependencies", (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n), (g, from, to, n)) \
  CUDA_ENTRY(cuGraphAddEmptyNode, "cuGraphAddEmptyNode", (CUgraphNode *x, CUgraph g, const CUgraphNode *deps, size_t n), (x, g, deps, n)) \
  CUDA_ENTRY(cuGraphAddHostNode, "cuGraphAddHostNode", (CUgraphNode *x, CUgraph g, const CUgraphNode *deps, size_t n, const CUDA_HOST_NODE_PARAMS *p), (x, g, deps, n, p)) \
  CUDA_ENTRY(cuGraphAddKernelNode, "cuGraphAddKernelNode", (CUgraphNode *x, CUgraph g, const CUgraphNode *deps, size_t n, const CUDA_KERNEL_NODE_PARAMS *p), (x, g, deps, n, p)) \
  CUDA_ENTRY(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode", (CUgraphNode *x, CUgraph g, const CUgraphNode *deps, size_t n, const CUDA_MEMCPY3D *p, CUcontext c), (x, g, deps, n, p, c)) \
  CUDA_ENTRY(cuGraphAddMemsetNode, "cuGraphAddMemsetNode", (CUgraphNode *x, CUgraph g, const CUgraphNode *deps, size_t n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c), (x, g, deps, n, p, c)) \
  CUDA_ENTRY(cuGraphAddChildGraphNode, "cuGraphAddChildGraphNode", (CUgraphNode *x, CUgraph g, const CUgraphNode *deps, size_t n, CUgraph child), (x, g, deps, n, child)) \
  CUDA_ENTRY(cuGraphGetEdges, "cuGraphGetEdges", (CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n), (g, from, to, n)) \
  CUDA_ENTRY(cuGraphDestroyNode, "cuGraphDestroyNode", (CUgraphNode x), (x)) \
  CUDA_ENTRY(cuTexRefSetArray, "cuTexRefSetArray", (CUtexref t, CUarray a, unsigned int flags), (t, a, flags)) \
  CUDA_ENTRY(cuTexRefGetArray, "cuTexRefGetArray", (CUarray *a, CUtexref t), (a, t)) \
  CUDA_ENTRY(cuTexRefSetAddress, "cuTexRefSetAddress_v2", (size_t *off, CUtexref t, CUdeviceptr p, size_t n), (off, t, p, n)) \
  CUDA_ENTRY(cuTexRefGetAddress, "cuTexRefGetAddress_v2", (CUdeviceptr *p, CUtexref t), (p, t)) \
  CUDA_ENTRY(cuTexRefSetAddress2D, "cuTexRefSetAddress2D_v3", (CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr p, size_t pitch), (t, d, p, pitch)) \
  CUDA_ENTRY(cuTexRefSetFormat, "cuTexRefSetFormat", (CUtexref t, CUarray_format f, int n), (t, f, n)) \
  CUDA_ENTRY(cuTexRefGetFormat, "cuTexRefGetFormat", (CUarray_format *f, int *n, CUtexref t), (f, n, t)) \
  CUDA_ENTRY(cuTexRefSetAddressMode, "cuTexRefSetAddressMode", (CUtexref t, int dim, CUaddress_mode m), (t, dim, m)) \
  CUDA_ENTRY(cuTexRefGetAddressMode, "cuTexRefGetAddressMode", (CUaddress_mode *m, CUtexref t, int dim), (m, t, dim)) \
  CUDA_ENTRY(cuTexRefSetFilterMode, "cuTexRefSetFilterMode", (CUtexref t, CUfilter_mode m), (t, m)) \
  CUDA_ENTRY(cuTexRefGetFilterMode, "cuTexRefGetFilterMode", (CUfilter_mode *m, CUtexref t), (m, t)) \
  CUDA_ENTRY(cuTexRefSetMipmapFilterMode, "cuTexRefSetMipmapFilterMode", (CUtexref t, CUfilter_mode m), (t, m)) \
  CUDA_ENTRY(cuTexRefSetMipmapLevelBias, "cuTexRefSetMipmapLevelBias", (CUtexref t, float bias), (t, bias)) \
  CUDA_ENTRY(cuTexRefSetMipmapLevelClamp, "cuTexRefSetMipmapLevelClamp", (CUtexref t, float lo, float hi), (t, lo, hi)) \
  CUDA_ENTRY(cuTexRefSetMaxAnisotropy, "cuTexRefSetMaxAnisotropy", (CUtexref t, unsigned int n), (t, n)) \
  CUDA_ENTRY(cuTexRefGetMaxAnisotropy, "cuTexRefGetMaxAnisotropy", (int *n, CUtexref t), (n, t)) \
  CUDA_ENTRY(cuTexRefSetBorderColor, "cuTexRefSetBorderColor", (CUtexref t, float *c), (t, c)) \
  CUDA_ENTRY(cuTexRefGetBorderColor, "cuTexRefGetBorderColor", (float *c, CUtexref t), (c, t)) \
  CUDA_ENTRY(cuTexRefSetFlags, "cuTexRefSetFlags", (CUtexref t, unsigned int flags), (t, flags)) \
  CUDA_ENTRY(cuTexRefGetFlags, "cuTexRefGetFlags", (unsigned int *flags, CUtexref t), (flags, t)) \
  CUDA_ENTRY(cuSurfRefSetArray, "cuSurfRefSetArray", (CUsurfref s, CUarray a, unsigned int flags), (s, a, flags)) \
  CUDA_ENTRY(cuSurfRefGetArray, "cuSurfRefGetArray", (CUarray *a, CUsurfref s), (a, s))
