import { argumentProblem, type CommandLine } from "../../../src/CommandLine.ts"

/** The `--argument=value` words of a command line that an engine itself would take, by name; a switch has an empty value. A string is the engine's refusal. */
export const readWords = (known: CommandLine, words: ReadonlyArray<string>): ReadonlyMap<string, string> | string => {
  const given = new Map<string, string>()
  for (const word of words) {
    const problem = argumentProblem(known, word)
    if (problem !== null) return problem
    const equals = word.indexOf("=")
    given.set(equals < 0 ? word.slice(2) : word.slice(2, equals), equals < 0 ? "" : word.slice(equals + 1))
  }
  return given
}

/** Bytes of one simulated GPU, as the node says that runs us; undefined where it does not. */
const gpuMemory = () => {
  const text = process.env.SEATRIAL_SIMULATED_GPU_BYTES
  return text === undefined || !/^\d{1,15}$/.test(text) ? undefined : Number(text)
}

/** What the reference engine is started with in the place of another: its own words, from the other's by name. */
export const ownWords = (given: ReadonlyMap<string, string>, names: Readonly<Record<string, string>>, gpus: string): ReadonlyArray<string> => {
  const memory = gpuMemory()
  return [
    ...Object.entries(names).flatMap(([own, name]) => {
      const value = given.get(name)
      return value === undefined ? [] : [`--${own}=${value}`]
    }),
    "--kv-cache-dtype=bfloat16",
    ...(memory === undefined ? [] : [`--gpu-memory-bytes=${memory * Math.max(1, Number(given.get(gpus) ?? 1))}`])
  ]
}
