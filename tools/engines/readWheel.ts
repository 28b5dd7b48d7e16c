import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { Schema } from "effect"
import type { CommandLine } from "../../packages/engines/src/CommandLine.ts"

const Argument = Schema.Struct({
  kind: Schema.Literals(["boolean", "switch", "integer", "number", "text", "choice", "json", "list", "object"]),
  choices: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, Schema.Number, Schema.Null])))
})

/** What an engine's wheel says of itself. */
const Wheel = Schema.Struct({
  engine: Schema.Literals(["vllm", "sglang"]),
  version: Schema.String,
  /** Names of files and definitions that this version does not have at the expected place. What they define is missing. */
  not_found: Schema.Array(Schema.String),
  arguments: Schema.Record(Schema.String, Argument),
  architectures: Schema.Record(Schema.String, Schema.String),
  parsers: Schema.Struct({ reasoning: Schema.Array(Schema.String), tools: Schema.Array(Schema.String) }),
  quantizations: Schema.Record(Schema.String, Schema.NullOr(Schema.Int)),
  /** Architectures that it applies LoRA adapters to, and the embeddings that it applies them to as well; of vLLM only. */
  adaptable: Schema.Record(Schema.String, Schema.Array(Schema.String)),
  /** Types of configurations for which it may have a class or a rule. */
  types: Schema.Array(Schema.String),
  /** Python packages that come with it. */
  packages: Schema.Array(Schema.String)
})
export type Wheel = typeof Wheel.Type

const Missing = Schema.Struct({ lines: Schema.Array(Schema.Array(Schema.String)), words: Schema.Array(Schema.String) })
export type Missing = typeof Missing.Type

const python = (args: ReadonlyArray<string>, input = ""): string => {
  const program = join(import.meta.dirname, "read_wheel.py")
  const read = spawnSync(process.env.PYTHON ?? "python3", [program, ...args], { encoding: "utf8", maxBuffer: 2 ** 26, input })
  if (read.status !== 0) throw new Error(`${args[0]} cannot be read: ${read.stderr}`)
  return read.stdout
}

const decodeWheel = Schema.decodeUnknownSync(Schema.fromJsonString(Wheel))
const decodeMissing = Schema.decodeUnknownSync(Schema.fromJsonString(Missing))

/** Reads a wheel's sources without running them. Throws where Python 3.11 or the wheel is missing. */
export const readWheel = (path: string): Wheel => decodeWheel(python([path]))

/** The lines and words that none of a wheel's sources has. */
export const missingIn = (path: string, wanted: Missing): Missing => decodeMissing(python([path, "--missing"], JSON.stringify(wanted)))

/** A wheel's arguments as the engines' package keeps them. */
export const commandLineOf = ({ arguments: known, engine }: Wheel): CommandLine =>
  Object.fromEntries(
    Object.entries(known)
      .filter(([flag]) => flag.startsWith("--"))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([flag, { choices = [], kind }]): [string, CommandLine[string]] => [
        flag.slice(2),
        // vLLM's parser knows the opposite of each.
        kind === "choice" ? choices.map(String) : kind === "boolean" && engine === "vllm" ? "pair" : kind
      ])
  )

/** A wheel's architectures by kind, as the engines' package keeps them. */
export const registeredOf = ({ architectures }: Wheel): Readonly<Record<string, ReadonlyArray<string>>> => {
  const kinds = [...new Set(Object.values(architectures))].sort()
  const of = (kind: string) =>
    Object.entries(architectures)
      .filter(([, its]) => its === kind)
      .map(([name]) => name)
      .sort()
  return Object.fromEntries(kinds.map((kind) => [kind, of(kind)]))
}

/** A wheel's methods of quantization as the engines' package keeps them. */
export const quantizationsOf = ({ quantizations }: Wheel): Readonly<Record<string, number | null>> =>
  Object.fromEntries(Object.entries(quantizations).sort(([one], [other]) => (one < other ? -1 : 1)))

/** A wheel's architectures that take LoRA adapters, of those that generate text, as the engines' package keeps them. */
export const adaptableOf = (wheel: Wheel): Readonly<Record<string, ReadonlyArray<string>>> =>
  Object.fromEntries(
    Object.entries(wheel.adaptable)
      .filter(([name]) => ["text", "multimodal"].includes(wheel.architectures[name] ?? ""))
      .sort(([one], [other]) => (one < other ? -1 : 1))
  )
