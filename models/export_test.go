package models

// FromConfig makes a model without looking at the checkpoint's tensors.
var FromConfig = fromConfig
