#!/usr/bin/env bash
# Prints the settings a build with the GPU driver's door needs, as one line of
# shell assignments; without a C compiler those of a CPU-only build, and says
# so on standard error. The Makefile uses it; by hand:
#
#   eval "export $(scripts/cuda-env.sh)"; go test ./...
#
# CGO_ENABLED=0 in the environment asks for the CPU-only build. All builds and
# tests trim paths and resolve names in Go, so that they share what is compiled:
# tests run the very packages that are shipped.
set -euo pipefail
door=$(cd "$(dirname "$0")/../runtime/internal/cuda" && pwd)
if [ "${CGO_ENABLED:-1}" = 0 ]; then
  echo "CGO_ENABLED=0 GOFLAGS='-trimpath -tags=nomsgpack'"
elif cc=${CC:-gcc}; [ "$(uname -s)" != Linux ] || ! command -v "${cc%% *}" >/dev/null; then # CC may be "ccache gcc"
  echo "building for the CPU only: CUDA needs Linux and a C compiler (gcc, or what CC names)" >&2
  echo "CGO_ENABLED=0 GOFLAGS='-trimpath -tags=nomsgpack'"
else
  # The build cache does not see headers of another package: the revision makes
  # it build anew when they change. Our directories come first, before what a
  # toolkit may have left in the usual places. Lazy binding, since functions of
  # the management library are looked for when they are called; some compilers
  # bind everything at the start.
  rev=$(cat "$door"/include/*.h "$door"/shim.[ch] | cksum | cut -d' ' -f1)
  echo "CGO_ENABLED=1 GOFLAGS='-trimpath -tags=nomsgpack,cuda,netgo,osusergo'" \
    "CGO_CPPFLAGS='-I$door/include -DCUDA_H_REV=$rev -Wno-deprecated-declarations'" \
    "CGO_LDFLAGS='-O2 -g -L$door/lib -Wl,-z,lazy'"
fi
