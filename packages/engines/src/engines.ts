import type { EngineWire, Runtime } from "@seatrial/domain"
import type { EngineAdapter } from "./EngineAdapter.ts"
import { reference } from "./reference/adapter.ts"
import { sglang } from "./sglang/adapter.ts"
import { vllm } from "./vllm/adapter.ts"

/** The registration of the engines. The order is the order of preference. */
const registered: Readonly<Record<Runtime, EngineAdapter>> = { vllm, sglang, reference }

export const engines: ReadonlyArray<EngineAdapter> = Object.values(registered)

export const engineFor = (runtime: Runtime): EngineAdapter | undefined => registered[runtime]

export const engineWire = (runtime: Runtime): EngineWire => registered[runtime].wire
