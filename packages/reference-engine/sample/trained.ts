import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = import.meta.dirname

/**
 * The repositories that `tools/sampleModel` trained: the chat model, a variant with different answers, the strong
 * adapter merged into it, this adapter, a weak adapter, and a reasoning model with two templates, only one of which can
 * turn reasoning off.
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

/**
 * The files of a trained repository, by name. Complete models share configuration and tokenizer, and reasoning models
 * also share their weights.
 */
export const trainedFiles = (name: TrainedName): ReadonlyMap<string, Uint8Array> => {
  const files = own(name)
  if (name === "tiny-thinker-always") return new Map([...own("tiny-thinker"), ...files])
  return files.has("model.safetensors") ? new Map([...own("tiny-chat"), ...files]) : files
}

/** Writes the files of `trainedFiles` to `directory` and creates the directory if necessary. */
export const writeTrained = (directory: string, name: TrainedName): void => {
  mkdirSync(directory, { recursive: true })
  for (const [file, bytes] of trainedFiles(name)) writeFileSync(join(directory, file), bytes)
}
