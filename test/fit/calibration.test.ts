import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { evaluate } from "../load/fit/evaluate.ts"
import { ModelFacts, Start } from "../load/fit/Start.ts"

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../load/fit", name), "utf8"))
const starts = Schema.decodeUnknownSync(Schema.Array(Start))(read("starts.json"))
const models = Schema.decodeUnknownSync(Schema.Record(Schema.String, ModelFacts))(read("models.json"))
