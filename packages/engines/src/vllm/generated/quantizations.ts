import type { RegisteredQuantizations } from "../../RegisteredQuantizations.ts"

/** What vllm 0.33.0 registers on CUDA. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const registeredQuantizations: RegisteredQuantizations = {
  auto_awq: 75,
  auto_gptq: 60,
  awq: 75,
  awq_marlin: 75,
  "compressed-tensors": 70,
  deepseek_v4_fp8: 75,
  experts_int8: 80,
  fp8: 75,
  gpt_oss_mxfp4: 80,
  gptq: 60,
  gptq_marlin: 60,
  humming: 75,
  inc: 60,
  modelopt: 80,
  modelopt_fp4: 75,
  modelopt_mixed: 75,
  modelopt_mxfp8: 80,
  moe_wna16: 70,
  mxfp4: 80,
  mxfp8: 80,
  online: 75,
  quark: 70,
  torchao: 75
}
