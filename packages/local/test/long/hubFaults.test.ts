import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { sampleHubToken } from "../../src/hub/SampleHub.ts"
import { makeRepository } from "../../src/hub/SampleRepository.ts"
import { manyShards } from "../hub/manyShards.ts"
import { withHub } from "../hub/withHub.ts"

const sharded = manyShards({ shards: 2, layers: 3, experts: 2 })
const { "generation_config.json": _, "preprocessor_config.json": __, "processor_config.json": ___, ...files } = sharded.files
const repository = makeRepository({
  name: "odd/model",
  // Long enough to be truncated.
  commits: [{ title: "Model", files: { ...files, "tokenizer_config.json": '{"model_max_length": 512}' } }]
})
const token = Option.some(Redacted.make(sampleHubToken))
const source = { repo: "odd/model" }

type Outcome = "served" | "unavailable" | "access_required" | "revision_not_found" | "repository_not_found" | "unsupported_format"

const status = (status: number, headers: Readonly<Record<string, string>> = {}): HubFault => ({ kind: "status", status, headers })

/**
 * A fault, and the result of a preview if it occurs once or permanently. `first`: the result if it occurs at the
 * request for the commit.
 */
const faults: ReadonlyArray<readonly [what: string, fault: HubFault, once: Outcome, stays: Outcome, first?: Outcome]> = [
  ["a reset connection", { kind: "reset" }, "served", "unavailable"],
  ["500", status(500), "served", "unavailable"],
  ["503", status(503), "served", "unavailable"],
  ["429 with no time", status(429), "served", "unavailable"],
  ["429 with a time", status(429, { ratelimit: '"api";r=0;t=55' }), "unavailable", "unavailable"],
  ["a body that ends early", { kind: "cut", after: 7 }, "served", "unavailable"],
  ["a body that stops", { kind: "stall", after: 7 }, "served", "unavailable"],
  ["an empty body", { kind: "body", body: new Uint8Array() }, "served", "unavailable"],
  ["another page in its place", { kind: "body", body: Buffer.from("<html>please log in</html>") }, "served", "unavailable"],
  ["a status of no hub", status(418), "served", "unavailable"],
  ["a status of a proxy", status(407), "served", "unavailable"],
  ["a repository that the law closed", status(451), "access_required", "access_required"],
  ["a commit that vanished", status(404, { "x-error-code": "RevisionNotFound" }), "revision_not_found", "revision_not_found"],
  ["a repository that vanished", status(404, { "x-error-code": "RepoNotFound" }), "revision_not_found", "revision_not_found", "repository_not_found"],
  ["a file that is listed and not there", status(404, { "x-error-code": "EntryNotFound" }), "unsupported_format", "unsupported_format", "repository_not_found"],
  ["a token that was revoked", status(401), "access_required", "access_required"],
  ["access that was withdrawn", status(403, { "x-error-code": "GatedRepo" }), "access_required", "access_required"]
]

/** Faults that are only possible in the content of a file. */
const contentFaults: typeof faults = [
  ["another range", { kind: "shift", by: 1 }, "served", "unavailable"],
  ["other bytes", { kind: "corrupt", offset: 3 }, "served", "unavailable"]
]

/** Timeouts that are only reached by a hub that never answers. */
const settingsFor = (fault: HubFault | null) => ({
  HUB_RETRIES: "1",
  HUB_PREVIEW_TIMEOUT: "2 minutes",
  HUB_TIMEOUT: fault?.kind === "stall" ? "1 second" : "1 minute"
})

const preview = (fault: HubFault | null, isAt: (request: HubRequest) => boolean) =>
  withHub(
    (hub) =>
      hub.inspect(source, token, "few").pipe(
        Effect.map((facts): Outcome => {
          assert.strictEqual(facts.weights_bytes, sharded.bytes)
          return "served"
        }),
        Effect.catchTags({
          HubUnavailable: ({ message }) => {
            assert.match(message, /^The model hub [^:]+\.$/)
            return Effect.succeed<Outcome>("unavailable")
          },
          HubRefusal: ({ code, message, remedy }) => {
            assert.isAbove(remedy.length, 10)
            assert.notInclude(message, "127.0.0.1")
            return code === "access_required" || code === "revision_not_found" || code === "repository_not_found" || code === "unsupported_format"
              ? Effect.succeed<Outcome>(code)
              : Effect.die(new Error(`refused with ${code}: ${message}`))
          }
        })
      ),
    { repositories: [repository], settings: settingsFor(fault), faults: (request) => (isAt(request) ? (fault ?? undefined) : undefined) }
  )

/** The requests of a preview without faults. */
const requests = Effect.gen(function* () {
  const paths: Array<string> = []
  assert.strictEqual(
    yield* preview(null, ({ path }) => {
      paths.push(path)
      return false
    }),
    "served"
  )
  return paths
})

describe("a preview whose hub fails at one of its requests", () => {
  it.live.each(faults)("succeeds or reports the fault: %s", ([, fault, once, stays, first]) =>
    Effect.gen(function* () {
      const paths = yield* requests
      assert.strictEqual(paths.length, 8)
      yield* Effect.forEach(
        paths,
        Effect.fnUntraced(function* (path, at) {
          assert.strictEqual(yield* preview(fault, (request) => request.path === path && request.count === 1), at === 0 ? (first ?? once) : once, path)
          assert.strictEqual(yield* preview(fault, (request) => request.path === path), at === 0 ? (first ?? stays) : stays, path)
        }),
        { concurrency: "unbounded", discard: true }
      )
    })
  )

  it.live.each(contentFaults)("succeeds or reports a fault of the hub, with %s of a file", ([, fault, once, stays]) =>
    Effect.gen(function* () {
      const paths = (yield* requests).filter((path) => path.includes("/resolve/"))
      yield* Effect.forEach(
        paths,
        Effect.fnUntraced(function* (path) {
          // No known hash covers the bytes of a header before the file is complete. A changed header is an invalid one.
          if (fault.kind === "corrupt" && path.endsWith(".safetensors")) return
          assert.strictEqual(yield* preview(fault, (request) => request.path === path && request.count === 1), once, path)
          assert.strictEqual(yield* preview(fault, (request) => request.path === path), stays, path)
        }),
        { concurrency: "unbounded", discard: true }
      )
    })
  )
})
