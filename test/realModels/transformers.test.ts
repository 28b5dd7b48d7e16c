import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { writeTrained } from "@seatrial/reference-engine/sample"
import { computeReference } from "@seatrial/trial"
import { Effect, Schema } from "effect"
import { python as installed } from "../engines/vllm/installVllm.ts"

/** A Python interpreter with torch, transformers and safetensors. `npm run test:vllm` installs one. */
const python = process.env.REFERENCE_PYTHON ?? installed
if (!existsSync(python)) throw new Error(`There is no ${python}. \`npm run test:vllm\` installs it; or set REFERENCE_PYTHON.`)

const Scored = Schema.Struct({ tokens: Schema.Array(Schema.Int), logprobs: Schema.Array(Schema.Finite) })
const Recorded = Schema.fromJsonString(Schema.Struct({ "tiny-chat": Schema.Struct({ texts: Schema.Record(Schema.String, Scored) }) }))
/** What the project's training program computed for the sample model, with other code. */
const recorded = Object.values(
  Schema.decodeUnknownSync(Recorded)(readFileSync(join(import.meta.dirname, "../../packages/reference-engine/sample/reference.json"), "utf8"))["tiny-chat"]
    .texts
)
const prompt = recorded[0]?.tokens.slice(0, 8) ?? []
const request = { sequences: recorded.map(({ tokens }) => tokens), prompts: [prompt], new_tokens: 4 }

/** A folder with the sample model. */
const sampleFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "seatrial-reference-"))
    writeTrained(folder, "tiny-chat")
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const compute = (folder: string, memoryBytes = 2 ** 30) => computeReference({ folder, python, memoryBytes }, request)

/** Changes fields of the configuration in a folder. */
const configure = (folder: string, fields: Readonly<Record<string, unknown>>) => {
  const file = join(folder, "config.json")
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...fields }))
}

describe("the program that computes references", () => {
  it.live("computes what the sample model's own program computed, and the same if the weights do not fit into memory", () =>
    Effect.gen(function* () {
      const folder = yield* sampleFolder
      const inMemory = yield* compute(folder)
      for (const [index, { logprobs, tokens }] of recorded.entries()) {
        const scored = inMemory.sequences[index]
        assert.deepStrictEqual(scored?.ids, tokens)
        const worst = Math.max(...logprobs.map((value, at) => Math.abs(value - (scored?.logprobs[at] ?? 0))))
        assert.isBelow(worst, 0.001)
      }
      assert.deepStrictEqual(
        inMemory.continuations.map(({ ids, prompt }) => [prompt, ids.length]),
        [[prompt, 4]]
      )
      const inParts = yield* compute(folder, 0)
      assert.deepStrictEqual([inParts.sequences, inParts.continuations], [inMemory.sequences, []])
    }).pipe(Effect.scoped)
  )

  const refusals = [
    ["quantized", { quantization_config: { quant_method: "fp8" } }],
    ["unknown_architecture", { model_type: "none", architectures: ["NoneForCausalLM"] }],
    ["unknown_architecture", { model_type: "none", auto_map: { AutoConfig: "configuration.Config", AutoModelForCausalLM: "modeling.Model" } }],
    ["other_tensors", { num_hidden_layers: 5 }],
    ["other_tensors", { num_hidden_layers: 3 }],
    ["other_tensors", { intermediate_size: 128 }]
  ] as const
  for (const [code, fields] of refusals) {
    it.live(`says ${code} for ${JSON.stringify(fields)}`, () =>
      Effect.gen(function* () {
        const folder = yield* sampleFolder
        configure(folder, fields)
        // The code of a repository must not run.
        for (const name of ["configuration.py", "modeling.py"]) writeFileSync(join(folder, name), `open(${JSON.stringify(join(folder, "ran"))}, "w")`)
        assert.strictEqual((yield* Effect.flip(compute(folder))).code, code)
        assert.isFalse(existsSync(join(folder, "ran")))
      }).pipe(Effect.scoped)
    )
  }

  it.live("fails without a code if the interpreter does", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(computeReference({ folder: yield* sampleFolder, python: "/bin/false", memoryBytes: 0 }, request))
      assert.isNull(failed.code)
    }).pipe(Effect.scoped)
  )
})
