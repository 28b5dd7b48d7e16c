/** GPUs by the words of their product names, the more specific names first. 89 means 8.9. */
const cards: ReadonlyArray<readonly [RegExp, number]> = [
  [/^(B300|GB300)$/, 103],
  [/^(B100|B200|GB200)$/, 100],
  [/^(H100L?|H200|H800|H20|GH200)$/, 90],
  [/^(L2|L4|L20|L40|L40S|L40G|40[5-9]0(TI|SUPER|D)?|ADA)$/, 89],
  [/^(A100|A100X|A800|A30|A30X)$/, 80],
  [/^(A2|A10|A10G|A10M|A16|A40|A[2-6]000|A4500|A5500|30[5-9]0(TI)?)$/, 86],
  [/^(GB10|SPARK)$/, 121],
  [/^(50[5-9]0(TI)?|BLACKWELL)$/, 120],
  [/^(T4|T4G|20[6-8]0(TI)?|TITAN)$/, 75],
  [/^(V100|V100S)$/, 70],
  [/^P(4|40)$/, 61],
  [/^P100$/, 60]
]

/** The compute capability of a GPU by its product label (89 means 8.9), or null if the label is unknown. */
export const computeCapability = (gpuPool: string): number | null => {
  // Some labels separate the memory size by a space instead of a hyphen.
  const words = gpuPool.toUpperCase().split(/[^A-Z0-9]+/)
  for (const [pattern, capability] of cards) if (words.some((word) => pattern.test(word))) return capability
  return words.includes("QUADRO") ? 75 : null
}

/** Formats a compute capability as NVIDIA does: 89 becomes 8.9. */
export const capabilityText = (capability: number): string => `${Math.floor(capability / 10)}.${capability % 10}`
