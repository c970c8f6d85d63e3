#include "../../shim.c"
