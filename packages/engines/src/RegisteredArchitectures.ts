/**
 * The kind of work that an architecture does. `fallback`: not a model but a way to run code from outside the engine.
 */
export type ArchitectureKind = "text" | "multimodal" | "embedding" | "classification" | "reward" | "speech" | "speculative" | "diffusion" | "fallback" | "other"

/** The architectures that an engine registers, by kind. */
export type RegisteredArchitectures = { readonly [Kind in ArchitectureKind]?: ReadonlyArray<string> }

/** Architectures that generate text token by token. Only these can be served. */
export const generating = ({ multimodal = [], text = [] }: RegisteredArchitectures): ReadonlySet<string> => new Set([...text, ...multimodal])

const purposes: { readonly [Kind in ArchitectureKind]?: string } = {
  embedding: "computes embeddings",
  classification: "classifies",
  reward: "scores answers",
  speech: "transcribes speech",
  speculative: "drafts tokens for another model",
  diffusion: "generates by diffusion"
}

/**
 * The purpose of a registered architecture that does not generate text, as the rest of a sentence; null for all other
 * architectures.
 */
export const otherPurpose = (registered: RegisteredArchitectures, architecture: string): string | null => {
  for (const [kind, purpose] of Object.entries(purposes)) {
    const listed = Object.entries(registered).find(([of]) => of === kind)?.[1] ?? []
    if (listed.includes(architecture)) return purpose
  }
  return /For(?:Sequence|Token)Classification$/.test(architecture) ? (purposes.classification ?? null) : null
}
