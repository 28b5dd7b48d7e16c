import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, type Redacted, Result, Schema } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { makeRepository } from "../../src/hub/SampleRepository.ts"
import { manyShards } from "./manyShards.ts"
import { tinyConfig, tinyFiles } from "./tinyFiles.ts"
import { withHub } from "./withHub.ts"

type Files = Parameters<typeof makeRepository>[0]["commits"][0]["files"]

const none = Option.none<Redacted.Redacted<string>>()
const code = { auto_map: { AutoProcessor: "a.B" } }

/** Optional files, each absent, plain, or requiring Python code of the repository. */
const optional = ["preprocessor_config.json", "processor_config.json", "generation_config.json", "hf_quant_config.json"] as const
const Kind = Schema.Literals(["absent", "absent", "plain", "plain", "code"])
const Shape = Schema.Struct({
  optional: Schema.Tuple([Kind, Kind, Kind, Kind]),
  tokenizer: Schema.Literals(["plain", "plain", "plain", "code"]),
  config: Schema.Literals(["plain", "plain", "plain", "code", "strange"]),
  template: Schema.Literals(["none", "jinja", "json"]),
  weights: Schema.Literals(["single", "four", "index", "sharded"])
})

const sharded = { index: manyShards({ shards: 2, layers: 3, experts: 1 }).files, sharded: manyShards({ shards: 14, layers: 3, experts: 2 }).files }

const filesOf = (shape: typeof Shape.Type): Files => {
  const tiny = tinyFiles(1)
  const weights: Record<string, Files[string]> = {}
  if (shape.weights === "single") weights["model.safetensors"] = tiny["model.safetensors"]
  else if (shape.weights === "four")
    for (const part of ["a", "b", "c", "d"]) {
      const name = `model.${part}.weight`
      const header = JSON.stringify({ [name]: { dtype: "F32", shape: [16], data_offsets: [0, 64] } })
      const length = Buffer.alloc(8)
      length.writeBigUInt64LE(BigInt(header.length))
      weights[`part-${part}.safetensors`] = Buffer.concat([length, Buffer.from(header), Buffer.alloc(64)])
    }
  else for (const [name, content] of Object.entries(sharded[shape.weights])) if (name.includes("safetensors")) weights[name] = content
  const config = { ...tinyConfig, ...(shape.config === "code" ? code : shape.config === "strange" ? { layer_types: ["odd", "odd"] } : {}) }
  const files: Record<string, Files[string]> = {
    ...weights,
    "config.json": JSON.stringify(shape.weights === "single" || shape.weights === "four" ? config : { ...config, hidden_size: 1_024 }),
    "tokenizer.json": '{"added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}',
    "tokenizer_config.json": JSON.stringify(shape.tokenizer === "code" ? code : { chat_template: "{{ messages }}" })
  }
  if (shape.template === "jinja") files["chat_template.jinja"] = "{{ messages[0].content }}"
  if (shape.template === "json") files["chat_template.json"] = JSON.stringify({ chat_template: "{{ messages }}" })
  for (const [at, name] of optional.entries()) if (shape.optional[at] !== "absent") files[name] = JSON.stringify(shape.optional[at] === "code" ? code : {})
  return files
}

/** The hub redirects files that are not in LFS to another of its addresses. */
const elsewhere = ({ count, file, path }: HubRequest): HubFault | undefined =>
  file !== null && !file.endsWith(".safetensors") && count === 1 ? { kind: "status", status: 307, headers: { location: `${path}?cached` } } : undefined

/** The comparable result: the facts for serving, or the code of the refusal. */
const compared = (shape: typeof Shape.Type, faults?: (request: HubRequest) => HubFault | undefined) =>
  withHub(
    (hub, asked) =>
      Effect.gen(function* () {
        const few = yield* Effect.result(hub.inspect({ repo: "any/model" }, none, "few"))
        const requests = asked.length
        const all = yield* Effect.result(hub.inspect({ repo: "any/model" }, none))
        const told = [few, all].map((result) =>
          Result.isSuccess(result)
            ? { config: result.success.config, bytes: result.success.weights_bytes, template: result.success.chat_template }
            : result.failure._tag === "HubRefusal"
              ? result.failure.code
              : assert.fail(result.failure.message)
        )
        return { few: told[0], all: told[1], requests }
      }),
    {
      repositories: [makeRepository({ name: "any/model", commits: [{ title: "Any", files: filesOf(shape) }] })],
      ...(faults === undefined ? {} : { faults })
    }
  )

describe("the requests of a run", () => {
  it.live.prop(
    "accept everything that a preview of the same repository accepted, within twelve requests",
    [Shape],
    ([shape]) =>
      Effect.gen(function* () {
        const { all, few, requests } = yield* compared(shape)
        assert.isAtMost(requests, 12)
        assert.deepStrictEqual(few, all)
      }),
    { arbitrary: { runs: 5 } }
  )

  it.live.prop(
    "do so if the hub redirects small files, for one optional file more and not both a template and an index",
    [Shape],
    ([shape]) =>
      Effect.gen(function* () {
        const [preprocessor, , generation] = shape.optional
        const one = {
          ...shape,
          optional: [preprocessor, "absent", preprocessor === "absent" ? generation : "absent", "absent"] as const,
          // One optional file is read, because the required files do not use up the requests.
          weights: shape.template === "none" && shape.weights !== "four" ? shape.weights : ("single" as const)
        }
        const { all, few, requests } = yield* compared(one, elsewhere)
        assert.isAtMost(requests, 12)
        if (typeof few !== "string") assert.notStrictEqual(all, "remote_code_required")
      }),
    { arbitrary: { runs: 3 } }
  )
})
