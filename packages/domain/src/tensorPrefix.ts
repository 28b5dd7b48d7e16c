/** The first values of a tensor in a weight file of the pinned commit. */
export interface TensorPrefix {
  readonly name: string
  /** The safetensors name of the type. */
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  /** Little-endian, in file order. */
  readonly bytes: Uint8Array
}
