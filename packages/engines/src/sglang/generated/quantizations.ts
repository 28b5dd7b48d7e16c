import type { RegisteredQuantizations } from "../../RegisteredQuantizations.ts"

/** What sglang 0.5.23 registers on CUDA. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const registeredQuantizations: RegisteredQuantizations = {
  "auto-round": 60,
  "auto-round-int8": 75,
  awq: 75,
  awq_marlin: 80,
  bitsandbytes: 70,
  blockwise_int8: 80,
  "compressed-tensors": 70,
  fp8: 80,
  gguf: null,
  gptq_marlin: 80,
  humming: 75,
  minimax_m3_nvfp4: 90,
  modelopt: 89,
  modelopt_fp4: 80,
  modelopt_fp8: 89,
  modelopt_mixed: 80,
  modelslim: 0,
  moe_wna16: 70,
  mxfp4: 80,
  mxfp8: 100,
  mxfp_w4a8: 0,
  nvfp4_online: 100,
  petit_nvfp4: 90,
  quark: 70,
  quark_int4fp8_moe: 70,
  quark_mxfp4: 70,
  w4afp8: 90,
  w8a8_fp8: 89,
  w8a8_int8: 75
}
