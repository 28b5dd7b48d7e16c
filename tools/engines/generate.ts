import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { adaptableOf, commandLineOf, quantizationsOf, readWheel, registeredOf, type Wheel } from "./readWheel.ts"

const packages = join(import.meta.dirname, "../../packages/engines/src")

const names = (values: Iterable<string>) => JSON.stringify([...values].sort())

const architecturesText = (wheel: Wheel): string => `import type { RegisteredArchitectures } from "../../RegisteredArchitectures.ts"

/** What ${wheel.engine} ${wheel.version} registers, by kind. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const registered: RegisteredArchitectures = ${JSON.stringify(registeredOf(wheel))}

/** Configuration types for which the engine may have a class or a rule, in addition to those of Transformers. */
export const ownTypes: ReadonlySet<string> = new Set(${JSON.stringify([...wheel.types].sort().join(" "))}.split(" "))
`

const commandLineText = (wheel: Wheel): string => `import type { CommandLine } from "../../CommandLine.ts"

/** What ${wheel.engine} ${wheel.version} takes. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const commandLine: CommandLine = ${JSON.stringify(commandLineOf(wheel))}

/** Its reasoning parsers. */
export const reasoningParsers = ${names(wheel.parsers.reasoning)} as const

/** Its tool call parsers. */
export const toolCallParsers = ${names(wheel.parsers.tools)} as const
`

const quantizationsText = (wheel: Wheel): string => `import type { RegisteredQuantizations } from "../../RegisteredQuantizations.ts"

/** What ${wheel.engine} ${wheel.version} registers on CUDA. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const registeredQuantizations: RegisteredQuantizations = ${JSON.stringify(quantizationsOf(wheel))}
`

const adaptableText = (
  wheel: Wheel
): string => `/** The architectures that ${wheel.engine} ${wheel.version} applies LoRA adapters to, each with the embeddings that it applies them to as well. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const adaptable: Readonly<Record<string, ReadonlyArray<string>>> = ${JSON.stringify(adaptableOf(wheel))}
`

// Biome skips the folders of generated files, so it formats the text before it is written.
const formatted = (text: string): string => {
  const biome = spawnSync("biome", ["check", "--write", "--colors=off", "--stdin-file-path=tools/engines/text.ts"], { input: text, encoding: "utf8" })
  if (biome.status !== 0) throw new Error(`biome cannot format the text: ${biome.stderr}`)
  return biome.stdout
}

/** Writes an engine's generated files from its wheel. */
const main = (path: string | undefined) => {
  if (path === undefined) {
    process.stderr.write("usage: node tools/engines/generate.ts WHEEL\n")
    process.exitCode = 2
    return
  }
  const wheel = readWheel(path)
  const files = [
    ["architectures.ts", architecturesText(wheel)],
    ["commandLine.ts", commandLineText(wheel)],
    ["quantizations.ts", quantizationsText(wheel)],
    ...(wheel.engine === "vllm" ? ([["adaptable.ts", adaptableText(wheel)]] as const) : [])
  ] as const
  if (wheel.not_found.length > 0) {
    process.stderr.write(`${wheel.engine} ${wheel.version} lacks ${wheel.not_found.join(", ")}: the written files are incomplete\n`)
    process.exitCode = 1
  }
  for (const [name, text] of files) writeFileSync(join(packages, wheel.engine, "generated", name), formatted(text))
}

main(process.argv[2])
