import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { Schema } from "effect"

const Argument = Schema.Struct({
  kind: Schema.Literals(["boolean", "switch", "integer", "number", "text", "choice", "json", "list", "object"]),
  choices: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, Schema.Number, Schema.Null])))
})

/** What an engine's wheel says of itself. */
const Wheel = Schema.Struct({
  engine: Schema.Literals(["vllm", "sglang"]),
  version: Schema.String,
  arguments: Schema.Record(Schema.String, Argument),
  architectures: Schema.Record(Schema.String, Schema.String),
  parsers: Schema.Struct({ reasoning: Schema.Array(Schema.String), tools: Schema.Array(Schema.String) })
})
export type Wheel = typeof Wheel.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Wheel))

/** Reads a wheel's sources without running them. Throws where Python 3.11 or the wheel is missing. */
export const readWheel = (path: string): Wheel => {
  const read = spawnSync(process.env.PYTHON ?? "python3", [join(import.meta.dirname, "read_wheel.py"), path], { encoding: "utf8", maxBuffer: 2 ** 26 })
  if (read.status !== 0) throw new Error(`${path} cannot be read: ${read.stderr}`)
  return decode(read.stdout)
}
