import { assert, describe, it } from "@effect/vitest"
import { Hub, HubUnavailable } from "@seatrial/hub"
import { type Job, KubeClient, KubeError } from "@seatrial/kube"
import { trainedFiles } from "@seatrial/reference-engine/sample"
import { type RunRevision, Runs } from "@seatrial/store"
import { Effect, Layer, Option, Result, Schema } from "effect"
import type { Gathered } from "../../packages/operator/src/gather/gather.ts"
import { referencePlan } from "../../packages/operator/src/objects/referenceJob.ts"
import { prepareReference } from "../../packages/operator/src/work/prepareReference.ts"
import { podClass, revision, run } from "../../packages/operator/test/observations.ts"
import { tinyReference } from "../mutants/trySample.ts"

const small = trainedFiles("tiny-chat")
const listed = [...small].map(([path, bytes]) => ({ path, size: bytes.length, blob_id: "b".repeat(40), sha256: null }))
const placed: RunRevision = { ...revision, facts: { ...revision.facts, files: listed } }
const job = { image: "python:1", python: "python3", cpu: 1, memoryBytes: 2 ** 30, waitSeconds: 600, nodeSelector: {}, tolerations: [] }
const ofClass = { ...podClass, referenceJob: job }
const gathered: Pick<Gathered, "podClass" | "run"> = { podClass: ofClass, run: { ...run, revision: placed } }
const settings = { fetchImage: "seatrial:1", namespace: "n", pullSecrets: [], weightsClaim: "weights" }
const decodeArguments = Schema.decodeUnknownSync(
  Schema.Struct({
    spec: Schema.Struct({
      template: Schema.Struct({ spec: Schema.Struct({ containers: Schema.Array(Schema.Struct({ args: Schema.Array(Schema.String) })) }) })
    })
  })
)

/** What the preparation creates and stores, if the hub returns these files and the cluster has these Jobs. */
const prepared = Effect.fnUntraced(function* (files: ReadonlyMap<string, Uint8Array> | null, jobs: ReadonlyArray<Job> = [], refused?: KubeError) {
  const created: Array<unknown> = []
  const missing: Array<string> = []
  const result = yield* Effect.result(prepareReference(gathered, settings)).pipe(
    Effect.provide([
      Layer.mock(Hub)({ readSmall: () => (files === null ? Effect.fail(new HubUnavailable({ message: "The hub is away." })) : Effect.succeed(files)) }),
      Layer.mock(KubeClient)({
        list: (resource) => Effect.succeed(jobs.map((each) => Schema.decodeUnknownSync(resource.schema)(each))),
        create: (resource, object) =>
          Effect.suspend(() => {
            if (refused !== undefined) return Effect.fail(refused)
            created.push(object)
            return Effect.succeed(Schema.decodeUnknownSync(resource.schema)(object))
          })
      }),
      Layer.mock(Runs)({ hubToken: () => Effect.succeed(Option.none()), noteMissingReference: (_, code) => Effect.sync(() => missing.push(code) === 1) })
    ])
  )
  return { created, missing, message: Result.isFailure(result) ? result.failure.message : null }
})

describe("the preparation of a reference", () => {
  it.live("creates a Job with the texts of the suite as tokens of the model, those of the model's stored reference", () =>
    Effect.gen(function* () {
      const { created, message } = yield* prepared(small)
      assert.isNull(message)
      const args = decodeArguments(created[0]).spec.template.spec.containers.flatMap((container) => container.args)
      const request = JSON.parse(args.at(-1)?.slice("--request=".length) ?? "")
      assert.deepStrictEqual(
        request.sequences,
        tinyReference.sequences.map(({ ids }) => ids)
      )
      assert.isBelow(args.at(-1)?.length ?? 0, 100_000)
    })
  )

  it.live("stores that a tokenizer cannot be read, and creates nothing", () =>
    Effect.gen(function* () {
      const unreadable = new Map([...small, ["tokenizer.json", Buffer.from("{}")] as const])
      const without = new Map([...small].filter(([path]) => path !== "tokenizer.json"))
      for (const files of [unreadable, without]) assert.deepStrictEqual(yield* prepared(files), { created: [], missing: ["no_tokenizer"], message: null })
    })
  )

  it.live("reads nothing if the Job exists, and accepts one that another run created meanwhile", () =>
    Effect.gen(function* () {
      const name = referencePlan(placed, ofClass, { needsGpu: false })?.name ?? ""
      assert.deepStrictEqual(yield* prepared(null, [{ metadata: { name } }]), { created: [], missing: [], message: null })
      const exists = new KubeError({ reason: "Conflict", statusReason: "AlreadyExists", message: "It exists." })
      assert.isNull((yield* prepared(small, [], exists)).message)
    })
  )

  it.live("can be tried again if the hub or the cluster refuses", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* prepared(null)).message, "The hub is away.")
      const denied = new KubeError({ reason: "Denied", message: "A quota." })
      assert.strictEqual((yield* prepared(small, [], denied)).message, "The Job of the reference was not created: A quota.")
    })
  )
})
