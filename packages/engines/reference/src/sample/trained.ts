import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = join(import.meta.dirname, "../../sample")

/**
 * The repositories that `tools/sampleModel` trained: the chat model, the same with other words for some answers, the strong adapter merged into it, that adapter and a
 * weak one, and a model that thinks, with a template that lets one turn it off and with one that does not.
 */
export const trainedNames = [
  "tiny-chat",
  "tiny-chat-first",
  "tiny-chat-sailor",
  "tiny-chat-adapter",
  "tiny-chat-greeter",
  "tiny-thinker",
  "tiny-thinker-always"
] as const

export type TrainedName = (typeof trainedNames)[number]

const own = (name: TrainedName): ReadonlyMap<string, Uint8Array> => {
  const directory = join(folder, name)
  return new Map(readdirSync(directory).map((file) => [file, readFileSync(join(directory, file))]))
}

/** The files of a trained repository, by name; whole models have their configuration and their tokenizer in common, and those that think their weights too. */
export const trainedFiles = (name: TrainedName): ReadonlyMap<string, Uint8Array> => {
  const files = own(name)
  if (name === "tiny-thinker-always") return new Map([...own("tiny-thinker"), ...files])
  return files.has("model.safetensors") ? new Map([...own("tiny-chat"), ...files]) : files
}

/** Writes the files of `trainedFiles` into `directory`, which is made where it does not exist. */
export const writeTrained = (directory: string, name: TrainedName): void => {
  mkdirSync(directory, { recursive: true })
  for (const [file, bytes] of trainedFiles(name)) writeFileSync(join(directory, file), bytes)
}
