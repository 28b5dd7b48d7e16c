/**
 * The quantization methods that an engine registers, each with the minimum compute capability (89 means 8.9), or null
 * if the engine states none.
 */
export type RegisteredQuantizations = { readonly [Method in string]?: number | null }
