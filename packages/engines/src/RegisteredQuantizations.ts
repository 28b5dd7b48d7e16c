/** The methods of quantization that an engine registers, each with the least compute capability of a card (8.9 is 89); null where the engine states none. */
export type RegisteredQuantizations = { readonly [Method in string]?: number | null }
