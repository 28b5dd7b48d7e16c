/** The parsed command line: the values of each argument. */
export type ParsedArguments = ReadonlyMap<string, ReadonlyArray<string>>

/** Bytes of one simulated GPU, as set by the node that runs this process; undefined if it is not set. */
const gpuMemory = () => {
  const text = process.env.SEATRIAL_SIMULATED_GPU_BYTES
  return text === undefined || !/^\d{1,15}$/.test(text) ? undefined : Number(text)
}

/** Translates the arguments of another engine into arguments of the reference engine. */
export const ownWords = (flags: ParsedArguments, names: Readonly<Record<string, string>>, gpus: string): ReadonlyArray<string> => {
  const memory = gpuMemory()
  const count = Math.max(1, Number(flags.get(gpus)?.[0] ?? 1))
  return [
    ...Object.entries(names).flatMap(([own, name]) => {
      const value = flags.get(name)?.[0]
      return value === undefined ? [] : [`--${own}=${value}`]
    }),
    "--kv-cache-dtype=bfloat16",
    ...(memory === undefined ? [] : [`--gpu-memory-bytes=${memory * count}`]),
    `--gpu-count=${count}`
  ]
}
