#!/usr/bin/env python3
"""Compiles src/*.cu with NVRTC to nvrtc/*.ptx.gz: what NVIDIA's own compiler
makes of the same kernels, for the interpreter to be tried on.

usage: nvrtc.py path/to/libnvrtc.so   (PyPI: nvidia-cuda-nvrtc; needs no GPU)
"""
import ctypes
import gzip
import hashlib
import pathlib
import sys

here = pathlib.Path(__file__).parent
lib = ctypes.CDLL(sys.argv[1])
major, minor = ctypes.c_int(), ctypes.c_int()
lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
options = [b"--gpu-architecture=compute_80", b"-std=c++17", b"-lineinfo", b"--use_fast_math"]


def compile(path):
    prog = ctypes.c_void_p()
    header = (here / "src/shim.h").read_bytes()
    rc = lib.nvrtcCreateProgram(ctypes.byref(prog), path.read_bytes(), path.name.encode(), 1,
                                (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(b"shim.h"))
    assert rc == 0, rc
    rc = lib.nvrtcCompileProgram(prog, len(options), (ctypes.c_char_p * len(options))(*options))
    n = ctypes.c_size_t()
    lib.nvrtcGetProgramLogSize(prog, ctypes.byref(n))
    log = ctypes.create_string_buffer(n.value)
    lib.nvrtcGetProgramLog(prog, log)
    if rc:
        sys.exit(f"{path}: {log.value.decode()}")
    lib.nvrtcGetPTXSize(prog, ctypes.byref(n))
    ptx = ctypes.create_string_buffer(n.value)
    lib.nvrtcGetPTX(prog, ptx)
    return ptx.raw.rstrip(b"\0")


out = here / "nvrtc"
out.mkdir(exist_ok=True)
lines = [f"compiler: NVRTC {major.value}.{minor.value}", "flags: " + b" ".join(options).decode()]
for path in sorted((here / "src").iterdir()):
    lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  src/{path.name}")
for path in sorted((here / "src").glob("*.cu")):
    data = gzip.compress(compile(path), mtime=0)
    (out / (path.stem + ".ptx.gz")).write_bytes(data)
    lines.append(f"{hashlib.sha256(data).hexdigest()}  nvrtc/{path.stem}.ptx.gz")
(out / "MANIFEST").write_text("\n".join(lines) + "\n")
