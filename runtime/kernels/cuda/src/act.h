// The gates of an MLP.
#pragma once
#include "common.h"

// erfc for z ≥ 0 to a relative error of some 1e-7: a Chebyshev fit of
// log(erfc(z)·e^(z²)/t) in t = 2/(2+z) (Numerical Recipes, erfcc).
DEV float erfc(float z) {
  float t = divf(1.0f, fma(0.5f, z, 1.0f));
  float p = 0.17087277f;
  p = fma(p, t, -0.82215223f);
  p = fma(p, t, 1.48851587f);
  p = fma(p, t, -1.13520398f);
  p = fma(p, t, 0.27886807f);
  p = fma(p, t, -0.18628806f);
  p = fma(p, t, 0.09678418f);
  p = fma(p, t, 0.37409196f);
  p = fma(p, t, 1.00002368f);
  p = fma(p, t, -1.26551223f);
  return t * exp2a(1.44269504f * fma(-z, z, p));
}

// The gates, kind as kernels.Activation: 0 SiLU, 1 GELU, 2 its tanh form.
DEV float activate(float x, int kind) {
  if (kind == 0) return divf(x, 1.0f + exp2a(-1.44269504f * x));
  if (kind == 1) {
    float c = 0.5f * erfc(absf(x) * 0.70710678f);
    return x * (x < 0 ? c : 1.0f - c);
  }
  float u = 1.59576912f * fma(0.044715f * x * x, x, x);
  return divf(x, 1.0f + exp2a(-1.44269504f * u));
}
