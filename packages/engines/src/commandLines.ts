import type { Runtime } from "@seatrial/domain"
import type { CommandLine } from "./CommandLine.ts"
import { commandLine as sglang } from "./sglang/generated/commandLine.ts"
import { commandLine as vllm } from "./vllm/generated/commandLine.ts"

/** The arguments that each engine accepts, by runtime. */
export const commandLines: Readonly<Record<Exclude<Runtime, "reference">, CommandLine>> = { vllm, sglang }
