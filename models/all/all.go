package all

import (
	_ "infer/models/llama"    // Llama 1 to 3.x, SmolLM2
	_ "infer/models/mistral"  // Mistral
	_ "infer/models/mixtral"  // Mixtral
	_ "infer/models/qwen2"    // Qwen2, Qwen2.5
	_ "infer/models/qwen3"    // Qwen3
	_ "infer/models/qwen3moe" // Qwen3 with mixtures of experts
)
