import type { Runtime } from "@seatrial/domain"
import type { EngineAdapter } from "./EngineAdapter.ts"
import { reference } from "./reference/adapter.ts"
import { sglang } from "./sglang/adapter.ts"
import { vllm } from "./vllm/adapter.ts"

/** The engines that can be served with, in the order of preference. */
export const engines: ReadonlyArray<EngineAdapter> = [vllm, sglang, reference]

export const engineFor = (runtime: Runtime): EngineAdapter | undefined => engines.find((engine) => engine.runtime === runtime)
