import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { trainedFiles, writeTrained } from "@seatrial/reference-engine/sample"
import { computeReference, referenceOfFolder } from "@seatrial/trial"
import { Effect, Schema } from "effect"
import { python as installed } from "../engines/vllm/installVllm.ts"
import { factsOf } from "../mutants/sampleFacts.ts"
import { tinyReference } from "../mutants/trySample.ts"

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
const request = { sequences: recorded.map(({ tokens }) => tokens), drawn: 0, prompts: [prompt], new_tokens: 4 }

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

const Mixtures = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Struct({
      names: Schema.Array(Schema.String),
      sequences: Schema.Array(Schema.Array(Schema.Int)),
      logprobs: Schema.Array(Schema.Array(Schema.Finite))
    })
  )
)

/** A folder with a folder for each kind of mixture of experts, and what Transformers computes after it loaded them itself. */
const mixtures = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "seatrial-mixtures-"))
    const script = join(import.meta.dirname, "mixtures.py")
    const printed = execFileSync(python, [script, folder], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, OMP_NUM_THREADS: "1" }
    })
    return { folder, expected: Schema.decodeUnknownSync(Mixtures)(printed) }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A tensor of the published files, by kind of model. */
const published = {
  mixtral: "model.layers.1.block_sparse_moe.experts.3.w2.weight",
  qwen3_moe: "model.layers.1.mlp.experts.3.down_proj.weight",
  deepseek_v3: "model.layers.1.mlp.gate.e_score_correction_bias",
  qwen3_next: "model.layers.1.mlp.experts.3.down_proj.weight",
  gpt_oss: "model.layers.1.mlp.experts.gate_up_proj",
  gpt_oss_packed: "model.layers.1.mlp.experts.gate_up_proj_blocks",
  llama4_text: "model.layers.1.feed_forward.experts.gate_up_proj"
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

  it.live("computes the stored reference of the sample model again, with its drawn sequences", () =>
    Effect.gen(function* () {
      const { commit } = factsOf("tiny-chat", trainedFiles("tiny-chat"))
      const { continuations, drawn, sequences } = yield* referenceOfFolder({ folder: yield* sampleFolder, python, memoryBytes: 2 ** 30 }, commit)
      assert.deepStrictEqual([drawn, continuations], [32, tinyReference.continuations])
      assert.deepStrictEqual(
        sequences.map(({ ids }) => ids),
        tinyReference.sequences.map(({ ids }) => ids)
      )
      const stored = tinyReference.sequences.flatMap(({ logprobs }) => logprobs)
      const differences = sequences.flatMap(({ logprobs }) => logprobs).map((value, at) => Math.abs(value - (stored[at] ?? 0)))
      assert.isBelow(Math.max(...differences), 0.001)
    }).pipe(Effect.scoped)
  )

  it.live("computes mixtures of experts as Transformers does, in memory and module by module", () =>
    Effect.gen(function* () {
      const { expected, folder } = yield* mixtures
      for (const [kind, name] of Object.entries(published)) {
        const { logprobs = [], names = [], sequences = [] } = expected[kind] ?? {}
        assert.include(names, name)
        for (const memoryBytes of [0, 2 ** 30]) {
          const result = yield* computeReference({ folder: join(folder, kind), python, memoryBytes }, { sequences, drawn: 0, prompts: [], new_tokens: 1 })
          const differences = result.sequences.map((scored, index) => scored.logprobs.map((value, at) => Math.abs(value - (logprobs[index]?.[at] ?? 0))))
          assert.deepStrictEqual([differences.length, ...differences.map(({ length }) => length)], [3, 39, 39, 39])
          assert.isBelow(Math.max(...differences.flat()), 0.0001, `${kind} with ${memoryBytes} bytes`)
        }
      }
      const file = join(folder, "mixtral", "config.json")
      const config = readFileSync(file, "utf8")
      for (const experts of [3, 5]) {
        writeFileSync(file, config.replace('"num_local_experts": 4', `"num_local_experts": ${experts}`))
        assert.strictEqual((yield* Effect.flip(compute(join(folder, "mixtral"), 0))).code, "other_tensors")
      }
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
