/** The words of a command line as an engine itself takes them: the values of each argument. */
export type Given = ReadonlyMap<string, ReadonlyArray<string>>

/** Bytes of one simulated GPU, as the node says that runs us; undefined where it does not. */
const gpuMemory = () => {
  const text = process.env.SEATRIAL_SIMULATED_GPU_BYTES
  return text === undefined || !/^\d{1,15}$/.test(text) ? undefined : Number(text)
}

/** What the reference engine is started with in the place of another: its own words, from the other's by name. */
export const ownWords = (given: Given, names: Readonly<Record<string, string>>, gpus: string): ReadonlyArray<string> => {
  const memory = gpuMemory()
  const count = Math.max(1, Number(given.get(gpus)?.[0] ?? 1))
  return [
    ...Object.entries(names).flatMap(([own, name]) => {
      const value = given.get(name)?.[0]
      return value === undefined ? [] : [`--${own}=${value}`]
    }),
    "--kv-cache-dtype=bfloat16",
    ...(memory === undefined ? [] : [`--gpu-memory-bytes=${memory * count}`]),
    `--gpu-count=${count}`
  ]
}
