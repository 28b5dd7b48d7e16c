import { assert, describe, it } from "@effect/vitest"
import type { TensorPrefix } from "@seatrial/domain"
import { Effect, Result } from "effect"
import { FetchHttpClient } from "effect/http"
import { loadedTensors } from "../../src/suite/loadedTensors.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { subjectAt } from "./subject.ts"

const bytesOf = (words: ReadonlyArray<number>) => new Uint8Array(Uint16Array.from(words).buffer)

/** 1, 2, -0.5 and 3.140625 in bfloat16; 0.1 is not among them. */
const words = [0x3f80, 0x4000, 0xbf00, 0x4049]
const values = [1, 2, -0.5, 3.140625]
const norm: TensorPrefix = { name: "model.norm.weight", dtype: "BF16", shape: [4], bytes: bytesOf(words) }
const embedding: TensorPrefix = { ...norm, name: "model.embed_tokens.weight", shape: [9, 2] }
const head: TensorPrefix = { ...embedding, name: "lm_head.weight" }

const checksum = { success: true, message: "Success.", per_engine_checksum: "ab".repeat(32) }

interface Engine {
  readonly of?: Readonly<Record<string, unknown>>
  readonly status?: number
  readonly hash?: unknown
  readonly change?: Partial<SuiteSubject>
}

/** What the row says of an engine that answers so, and what it was asked. */
const tried = ({ change = {}, hash = checksum, of = {}, status = 200 }: Engine) =>
  Effect.gen(function* () {
    const requests: Array<string> = []
    const bare = yield* subjectAt("http://127.0.0.1:1")
    const subject: SuiteSubject = {
      ...bare,
      offers: { ...bare.offers, loadedTensors: { values: "/values", checksum: "/checksum", type: "auto", mostValues: 18 } },
      repository: { ...bare.repository, config: { ...bare.repository.config, dtype: "bfloat16" } },
      firstValues: [embedding, norm, head],
      client: {
        ...bare.client,
        post: (path, body) => {
          requests.push(body)
          const { name }: { readonly name?: string } = JSON.parse(body)
          const right = name === norm.name ? values : [values.slice(0, 2), values.slice(2)]
          return Effect.succeed(path === "/checksum" ? { status: 200, text: JSON.stringify(hash) } : { status, text: JSON.stringify(of[name ?? ""] ?? right) })
        }
      },
      ...change
    }
    const checksums: Array<string> = []
    const check = loadedTensors((checksum) => checksums.push(checksum))
    const skipped = check.skipped?.(subject) ?? null
    const result = yield* Effect.result(check.run(subject))
    const detail = Result.isSuccess(result) ? result.success : result.failure._tag === "NotApplicable" ? "not applicable" : "fails"
    return { skipped, requests, checksums, detail, failed: Result.isFailure(result) && result.failure._tag === "Unexpected" ? result.failure.detail : null }
  }).pipe(Effect.provide(FetchHttpClient.layer))

const detailOf = (engine: Engine) => Effect.map(tried(engine), ({ detail }) => detail)
const failureOf = (engine: Engine) => Effect.map(tried(engine), ({ failed }) => failed)

describe("loaded_tensors", () => {
  it.effect("passes an engine whose values equal the files', and requests no more rows than it compares", () =>
    Effect.gen(function* () {
      const { requests, detail, skipped } = yield* tried({})
      assert.isNull(skipped)
      assert.strictEqual(detail, "12 values of 3 tensors are the files', checksum abababababababab")
      assert.deepStrictEqual(
        requests.map((body): unknown => JSON.parse(body)),
        [
          { name: "model.embed_tokens.weight", truncate_size: 2 },
          { name: "model.norm.weight", truncate_size: 4 },
          { name: "lm_head.weight", truncate_size: 2 },
          { action: "checksum" }
        ]
      )
    })
  )

  it.effect("fails an engine with wrong, fewer or no values", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* failureOf({ of: { [norm.name]: [1, 2, -0.5, 3.15625] } }), "1 of the first 4 values of model.norm.weight are not the file's")
      assert.strictEqual(yield* failureOf({ of: { [embedding.name]: [[1, 2]] } }), "HTTP 200, 2 of 4 values of model.embed_tokens.weight")
      assert.strictEqual(yield* failureOf({ of: { [head.name]: "none" } }), "HTTP 200, 0 of 4 values of lm_head.weight")
      assert.strictEqual(yield* failureOf({ status: 500 }), "HTTP 500, 4 of 4 values of model.embed_tokens.weight")
    })
  )

  it.effect("accepts rounding to the served type, and no other", () =>
    Effect.gen(function* () {
      const bare = yield* subjectAt("http://127.0.0.1:1").pipe(Effect.provide(FetchHttpClient.layer))
      const tenth: TensorPrefix = { name: norm.name, dtype: "F32", shape: [1], bytes: new Uint8Array(Float32Array.of(0.1).buffer) }
      const engine = (type: "auto" | "bfloat16" | "float16", dtype: string, servedValue: number): Engine => ({
        of: { [norm.name]: [servedValue] },
        change: {
          firstValues: [tenth],
          offers: { ...bare.offers, loadedTensors: { values: "/values", checksum: "/checksum", type, mostValues: 18 } },
          repository: { ...bare.repository, config: { ...bare.repository.config, dtype } }
        }
      })
      const [single, half, brain] = [Math.fround(0.1), 0.0999755859375, 0.10009765625]
      for (const [type, dtype, right] of [
        ["bfloat16", "float32", [brain]],
        ["float16", "float32", [half]],
        ["auto", "bfloat16", [single, brain]],
        ["auto", "float32", [single, half, brain]]
      ] as const) {
        for (const servedValue of [single, half, brain]) {
          const failed = yield* failureOf(engine(type, dtype, servedValue))
          assert.strictEqual(
            failed === null,
            right.some((value) => value === servedValue),
            `${type} ${dtype} ${servedValue}`
          )
        }
      }
    })
  )

  it.effect("requests no tensor that is too large and no tied head, and does not apply if no values are reported", () =>
    Effect.gen(function* () {
      const large = { ...embedding, shape: [10, 2] }
      assert.strictEqual(
        yield* detailOf({ change: { firstValues: [large, norm] } }),
        "4 values of 1 tensors are the files', 1 too large to be asked for, checksum abababababababab"
      )
      const bare = yield* subjectAt("http://127.0.0.1:1").pipe(Effect.provide(FetchHttpClient.layer))
      const repository = { ...bare.repository, small: new Map([["config.json", '{"tie_word_embeddings":true}']]) }
      const { requests } = yield* tried({ change: { repository, firstValues: [embedding, head] } })
      assert.lengthOf(requests, 2)
      for (const status of [400, 401, 403]) assert.strictEqual(yield* detailOf({ status }), "not applicable")
      assert.strictEqual((yield* tried({ change: { offers: bare.offers } })).skipped, "the engine reports no tensor values")
      assert.strictEqual((yield* tried({ change: { firstValues: [] } })).skipped, "no tensor of a known name")
      const quantized = { ...bare.repository, config: { ...bare.repository.config, quantization: "awq" as const } }
      assert.strictEqual((yield* tried({ change: { repository: quantized } })).skipped, "quantized")
    })
  )

  it.effect("fails an engine whose hash of all tensors differs from an earlier start, and accepts an engine without a hash", () =>
    Effect.gen(function* () {
      const before = (loadedChecksum: string | null) => ({ earlier: [{ fingerprints: [], likelihood: null, loadedChecksum }] })
      assert.strictEqual(yield* detailOf({ change: before("abababababababab") }), "12 values of 3 tensors are the files', checksum abababababababab as before")
      assert.strictEqual(
        yield* failureOf({ change: before("0000000000000000") }),
        "checksum abababababababab of all that is loaded, 0000000000000000 at an earlier start"
      )
      assert.isNull(yield* failureOf({ change: before(null) }))
      assert.deepStrictEqual((yield* tried({})).checksums, ["abababababababab"])
      assert.deepStrictEqual((yield* tried({ hash: { success: false } })).checksums, [])
      assert.strictEqual(
        yield* detailOf({ hash: { success: false }, change: before("0000000000000000") }),
        "12 values of 3 tensors are the files', no checksum"
      )
    })
  )
})
