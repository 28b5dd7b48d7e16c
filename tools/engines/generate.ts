import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { readWheel, type Wheel } from "./readWheel.ts"

const packages = join(import.meta.dirname, "../../packages/engines/src")

const names = (values: Iterable<string>) => JSON.stringify([...values].sort())

const architecturesOf = ({ architectures, engine, version }: Wheel): string => {
  const kinds = [...new Set(Object.values(architectures))].sort()
  const lists = kinds.map(
    (kind) =>
      `${kind}: ${names(
        Object.entries(architectures)
          .filter(([, of]) => of === kind)
          .map(([name]) => name)
      )}`
  )
  return `import type { RegisteredArchitectures } from "../RegisteredArchitectures.ts"

/** What ${engine} ${version} registers, by kind. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const registered: RegisteredArchitectures = { ${lists.join(", ")} }
`
}

const commandLineOf = ({ arguments: known, engine, parsers, version }: Wheel): string => {
  const entries = Object.entries(known)
    .filter(([flag]) => flag.startsWith("--"))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(
      ([flag, { choices, kind }]) =>
        `${JSON.stringify(flag.slice(2))}: ${JSON.stringify(kind === "choice" ? choices : kind === "boolean" && engine === "vllm" ? "pair" : kind)}`
    )
  return `import type { CommandLine } from "../CommandLine.ts"

/** What ${engine} ${version} takes. Generated from its wheel by tools/engines/generate.ts: not to be edited. */
export const commandLine: CommandLine = { ${entries.join(", ")} }

/** Readers of reasoning that it has. */
export const reasoningParsers = ${names(parsers.reasoning)} as const

/** Readers of tool calls that it has. */
export const toolCallParsers = ${names(parsers.tools)} as const
`
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
    ["architectures.ts", architecturesOf(wheel)],
    ["commandLine.ts", commandLineOf(wheel)]
  ] as const
  for (const [name, text] of files) {
    const file = join(packages, wheel.engine, name)
    writeFileSync(file, text)
    spawnSync("biome", ["check", "--write", "--colors=off", file], { stdio: "inherit" })
  }
}

main(process.argv[2])
