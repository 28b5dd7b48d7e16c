import type { Runtime } from "@seatrial/domain"
import type { CommandLine } from "./CommandLine.ts"
import { commandLine as sglang } from "./sglang/commandLine.ts"
import { commandLine as vllm } from "./vllm/commandLine.ts"

/** What each engine's own parser takes, by runtime. */
export const commandLines: Readonly<Record<Exclude<Runtime, "reference">, CommandLine>> = { vllm, sglang }
