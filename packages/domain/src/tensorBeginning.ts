/** The first values of a tensor, as a weight file of the pinned commit holds them. */
export interface TensorBeginning {
  readonly name: string
  /** As safetensors call it. */
  readonly dtype: string
  readonly shape: ReadonlyArray<number>
  /** Little-endian, in the order of the file. */
  readonly bytes: Uint8Array
}
