import type { Start } from "./Start.ts"

/** GiB of GPU memory that CUDA reports, by card. The first match counts. */
const cards: ReadonlyArray<readonly [RegExp, number]> = [
  [/\bG?B300\b/i, 268],
  [/\bG?B200\b/i, 178.4],
  [/\bGH200.*96/i, 94.5],
  [/\bH200\b|H20-141/i, 139.8],
  [/\bH20\b/i, 95.1],
  [/H100 NVL|94GB/i, 93.1],
  [/RTX[ -]PRO[ -]6000/i, 94.97],
  [/\b(H100|H800)\b/i, 79.18],
  [/\bA100.*40/i, 39.5],
  [/\b(A100|A800)\b/i, 79.25],
  [/\bA10G?\b/i, 22.1],
  [/\b(L40S?|A6000|A40|RTX 6000)\b/i, 44.4],
  [/(?<!\d)5090\b/i, 31.36],
  [/(?<!\d)(4090|3090)\b/i, 23.6],
  [/\bL4\b/i, 22.03],
  [/\bT4\b/i, 14.6],
  [/\bV100.*32/i, 31.7],
  [/\bV100\b/i, 15.8],
  [/\bGB10\b|Spark/i, 121.6]
]

/** The memory of a start's GPU in GiB: the reported figure, or the usual one for the card. Throws for an unknown card. */
export const memoryGibOf = ({ gpu, gpu_memory_gib, id }: Pick<Start, "gpu" | "gpu_memory_gib" | "id">): number => {
  const known = gpu_memory_gib ?? cards.find(([pattern]) => pattern.test(gpu))?.[1]
  if (known === undefined) throw new Error(`${id} does not report the memory of its GPU, and the memory of the card ${gpu} is not known`)
  return known
}
