import { assert, describe, it } from "@effect/vitest"
import type { HubRefusal, HubUnavailable } from "@seatrial/hub"
import { Effect, Option, Redacted } from "effect"
import type { HubFault, HubRequest } from "../../src/hub/HubFault.ts"
import { sampleHubToken } from "../../src/hub/SampleHub.ts"
import { makeRepository, type SampleRepository } from "../../src/hub/SampleRepository.ts"
import { manyShards } from "./manyShards.ts"
import { tinyFiles, tinyWeightsBytes } from "./tinyFiles.ts"
import { withHub } from "./withHub.ts"

const none = Option.none<Redacted.Redacted<string>>()
const token = Option.some(Redacted.make(sampleHubToken))
const small = makeRepository({ name: "odd/small", commits: [{ title: "Small", files: tinyFiles(1) }] })
const sharded = manyShards({ shards: 163, layers: 30, experts: 32 })
const large = makeRepository({ name: "odd/large", commits: [{ title: "Large", files: sharded.files }] })

const misled = makeRepository({ name: "odd/large", commits: [{ title: "Large", files: manyShards({ shards: 163, layers: 30, experts: 32, total: 1 }).files }] })

const refusalOf = (effect: Effect.Effect<unknown, HubRefusal | HubUnavailable>) =>
  Effect.flatMap(Effect.flip(effect), (error) => (error._tag === "HubRefusal" ? Effect.succeed(error) : Effect.die(error)))
const unavailableOf = (effect: Effect.Effect<unknown, HubRefusal | HubUnavailable>) =>
  Effect.flatMap(Effect.flip(effect), (error) => (error._tag === "HubUnavailable" ? Effect.succeed(error) : Effect.die(error)))

const status = (status: number, headers: Readonly<Record<string, string>> = {}): HubFault => ({ kind: "status", status, headers })
/** The hub redirects files that are not in LFS to another of its addresses. */
const elsewhere = ({ count, file, path }: HubRequest): HubFault | undefined =>
  file !== null && !file.endsWith(".safetensors") && count === 1 ? status(307, { location: `${path}?cached` }) : undefined

describe("the requests of a preview", () => {
  // The second index states a total that differs from the tensors, as several real repositories do.
  it.live.each([large, misled])("for a model with 163 weight files are 12, and every tensor is known", (repository) =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const few = yield* hub.inspect({ repo: "odd/large" }, none, "few")
          assert.isAtMost(asked.length, 12)
          assert.strictEqual(few.weights_bytes, sharded.bytes)
          const all = yield* hub.inspect({ repo: "odd/large" }, none)
          assert.isAbove(asked.length, sharded.shards)
          assert.deepStrictEqual(few, all)
        }),
      { repositories: [repository] }
    )
  )

  it.live("are no more if the hub redirects small files, with the same result if the index is correct", () =>
    Effect.gen(function* () {
      const inspected = (repository: SampleRepository) =>
        withHub(
          (hub, asked) =>
            Effect.gen(function* () {
              const { weights_bytes } = yield* hub.inspect({ repo: "odd/large" }, none, "few")
              assert.isAtMost(asked.length, 12)
              return weights_bytes
            }),
          { repositories: [repository], faults: elsewhere }
        )
      assert.strictEqual(yield* inspected(large), sharded.bytes)
      assert.closeTo(yield* inspected(misled), sharded.bytes, sharded.bytes / 1e6)
    })
  )

  it.live("are enough to refuse Python in the configuration of a processor that was not read", () => {
    const files = { ...sharded.files, "processing_odd.py": "raise RuntimeError\n" }
    const repository = makeRepository({ name: "odd/large", commits: [{ title: "With Python", files }] })
    return withHub(
      (hub) =>
        Effect.gen(function* () {
          const { code, message } = yield* refusalOf(hub.inspect({ repo: "odd/large" }, none, "few"))
          assert.deepStrictEqual([code, message.includes("processing_odd.py")], ["remote_code_required", true])
        }),
      { repositories: [repository], faults: elsewhere }
    )
  })

  it.live("list files page by page if the hub does not return them with the commit", () =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* hub.inspect({ repo: "odd/large" }, none, "few")).weights_bytes, sharded.bytes)
          assert.isAtMost(asked.length, 12)
        }),
      {
        repositories: [large],
        faults: ({ count, path }) =>
          path === "/api/models/odd/large" && count === 1
            ? { kind: "body", body: Buffer.from(JSON.stringify({ sha: large.commits[0].id, siblings: [{ rfilename: "config.json" }] })) }
            : undefined
      }
    )
  )

  it.live("are not repeated for a cached commit until the cache expires", () =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const first = yield* hub.inspect({ repo: "odd/small" }, none, "few")
          const before = asked.length
          assert.deepStrictEqual(yield* hub.inspect({ repo: "odd/small" }, none), first)
          assert.strictEqual(asked.length, before + 1)
        }),
      { repositories: [small] }
    ).pipe(
      Effect.andThen(
        withHub(
          (hub, asked) =>
            Effect.gen(function* () {
              yield* hub.inspect({ repo: "odd/small" }, none, "few")
              const before = asked.length
              yield* hub.inspect({ repo: "odd/small" }, none, "few")
              assert.strictEqual(asked.length, before * 2)
            }),
          { repositories: [small], settings: { HUB_REMEMBER: "0 millis" } }
        )
      )
    )
  )

  it.live.each(["private", "gated"] as const)("show a cached %s repository only to callers who may read it now", (kind) =>
    withHub(
      (hub) =>
        Effect.gen(function* () {
          const source = { repo: "odd/closed" }
          assert.strictEqual((yield* hub.inspect(source, token, "few")).weights_bytes, tinyWeightsBytes)
          for (const other of [none, Option.some(Redacted.make("hf_another"))]) {
            const { code, message } = yield* refusalOf(hub.inspect(source, other, "few"))
            assert.include(["repository_not_found", "access_required", "no_hub_connection"], code)
            assert.notInclude(message, String(tinyWeightsBytes))
          }
          assert.strictEqual((yield* hub.inspect(source, token, "few")).weights_bytes, tinyWeightsBytes)
        }),
      { repositories: [makeRepository({ name: "odd/closed", [kind]: true, commits: [{ title: "Closed", files: tinyFiles(1) }] })] }
    )
  )

  it.live("end in time if the hub is slow, and the message says so", () =>
    withHub((hub) => Effect.map(unavailableOf(hub.inspect({ repo: "odd/small" }, none, "few")), ({ message }) => assert.match(message, /too long/)), {
      repositories: [small],
      settings: { HUB_PREVIEW_TIMEOUT: "200 millis" },
      faults: ({ file }) => (file === "config.json" ? { kind: "drip", every: 20 } : undefined)
    })
  )
})

describe("a ref", () => {
  it.live("is resolved once, even if the branch moves during the preview", () => {
    const moved = makeRepository({
      name: "odd/small",
      commits: [
        { title: "Small", files: tinyFiles(1) },
        { title: "Other", files: tinyFiles(2) }
      ]
    })
    const [newest, oldest] = moved.commits
    let current = oldest ?? newest
    const moving = {
      ...moved,
      get commits() {
        return [current, newest, ...(oldest === undefined ? [] : [oldest])] as const satisfies typeof moved.commits
      }
    }
    return withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const facts = yield* hub.inspect({ repo: "odd/small", ref: "main" }, none, "few")
          assert.strictEqual(facts.commit as string, oldest?.id)
          assert.strictEqual(asked.filter(({ path }) => path.endsWith("/main")).length, 1)
          for (const { path } of asked.slice(1)) assert.include(path, facts.commit)
        }),
      {
        repositories: [moving],
        faults: ({ path }) => {
          if (!path.endsWith("/main")) current = newest
          return undefined
        }
      }
    )
  })

  it.live("may be a short hash, even if the hub only accepts full ones; an ambiguous one is refused", () => {
    const commit = small.commits[0].id
    const options = {
      repositories: [small],
      faults: ({ path }: HubRequest) => (/\/revision\/[0-9a-f]{7,39}$/.test(path) ? status(404, { "x-error-code": "RevisionNotFound" }) : undefined)
    }
    return withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* hub.inspect({ repo: "odd/small", ref: commit.slice(0, 10) }, none, "few")).commit as string, commit)
          assert.isAtMost(asked.length, 12)
          assert.strictEqual((yield* hub.inspect({ repo: "odd/small", ref: commit.slice(0, 7).toUpperCase() }, none, "few")).commit as string, commit)
          assert.strictEqual((yield* hub.inspect({ repo: "odd/small", ref: commit.toUpperCase() }, none, "few")).commit as string, commit)
          assert.strictEqual((yield* refusalOf(hub.inspect({ repo: "odd/small", ref: "0123456" }, none, "few"))).code, "revision_not_found")
          const short = yield* refusalOf(hub.inspect({ repo: "odd/small", ref: commit.slice(0, 6) }, none, "few"))
          assert.strictEqual(short.code, "revision_not_found")
          assert.include(short.remedy, "first seven digits")
        }),
      options
    )
  })

  it.live("may be a short hash of another branch or tag; otherwise the full hash is required", () => {
    const tagged = makeRepository({ name: "odd/tagged", commits: [{ title: "Tagged", tag: "v1", files: tinyFiles(1) }] })
    const commit = tagged.commits[0].id
    return withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* hub.inspect({ repo: "odd/tagged", ref: commit.slice(0, 8) }, none, "few")).commit as string, commit)
          assert.isAtMost(asked.length, 12)
          const absent = yield* refusalOf(hub.inspect({ repo: "odd/tagged", ref: "01234567" }, none, "few"))
          assert.strictEqual(absent.code, "revision_not_found")
          assert.match(absent.remedy, /full commit.*newest 300.* of main/)
        }),
      {
        repositories: [tagged],
        faults: ({ path }) =>
          /\/revision\/[0-9a-f]{7,39}$/.test(path)
            ? status(404, { "x-error-code": "RevisionNotFound" })
            : path.includes("/commits/")
              ? { kind: "body", body: new TextEncoder().encode("[]") }
              : undefined
      }
    )
  })

  it.live("that is a short hash costs at most 12 requests, although the hub refuses it first", () =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const { weights_bytes } = yield* hub.inspect({ repo: "odd/large", ref: large.commits[0].id.slice(0, 10) }, none, "few")
          assert.strictEqual(weights_bytes, sharded.bytes)
          assert.isAtMost(asked.length, 12)
        }),
      {
        repositories: [large],
        faults: ({ path }) => (/\/revision\/[0-9a-f]{7,39}$/.test(path) ? status(404, { "x-error-code": "RevisionNotFound" }) : undefined)
      }
    )
  )

  it.live("continues after a preview that timed out, without repeating its requests", () => {
    let slow = true
    return withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          yield* unavailableOf(hub.inspect({ repo: "odd/small" }, none, "few"))
          const first = asked.flatMap(({ file }) => (file === null || file === "model.safetensors" ? [] : [file]))
          assert.include(first, "config.json")
          slow = false
          const before = asked.length
          yield* hub.inspect({ repo: "odd/small" }, none, "few")
          for (const { file } of asked.slice(before)) assert.notInclude(first, file)
        }),
      {
        repositories: [small],
        faults: ({ file }) => (slow && file === "model.safetensors" ? { kind: "stall", after: 1 } : undefined),
        settings: { HUB_PREVIEW_TIMEOUT: "1 second" }
      }
    )
  })

  it.live("that is a commit is never answered by another commit", () =>
    withHub(
      (hub) =>
        Effect.map(unavailableOf(hub.inspect({ repo: "odd/small", ref: "0".repeat(40) }, none, "few")), ({ message }) =>
          assert.match(message, /unknown format/)
        ),
      {
        repositories: [small],
        faults: ({ path }) =>
          path.endsWith("0".repeat(40)) ? { kind: "body", body: Buffer.from(JSON.stringify({ sha: small.commits[0].id, siblings: [] })) } : undefined
      }
    )
  )

  it.live("of a renamed repository leads to its present name, which all further requests use", () =>
    withHub(
      (hub, asked) =>
        Effect.gen(function* () {
          const facts = yield* hub.inspect({ repo: "old/name" }, none, "few")
          assert.strictEqual(facts.repo as string, "odd/small")
          for (const { path } of asked.slice(2)) assert.include(path, "odd/small")
        }),
      {
        repositories: [small],
        faults: ({ path }) => (path.startsWith("/api/models/old/name") ? status(307, { location: path.replace("old/name", "odd/small") }) : undefined)
      }
    )
  )
})

describe("the hub's answer", () => {
  const answered = (fault: HubFault, settings: Readonly<Record<string, string>> = {}) => ({
    repositories: [small],
    settings: { HUB_RETRIES: "1", ...settings },
    faults: () => fault
  })

  it.live.each([
    ["Retry-After in seconds", { "retry-after": "7" }, 7_000],
    ["Retry-After as a date", { "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", date: "Sat, 21 Nov 2026 10:00:00 GMT" }, 30_000],
    ["RateLimit as the hub sends it", { ratelimit: '"api";r=0;t=55', "ratelimit-policy": '"fixed window";"api";q=500;w=300' }, 55_000],
    ["RateLimit in its older form", { ratelimit: "limit=100, remaining=0, reset=12" }, 12_000],
    ["RateLimit-Reset", { "ratelimit-limit": "100", "ratelimit-reset": "3" }, 3_000],
    ["none", {}, undefined],
    ["one that is no time", { "retry-after": "soon" }, undefined]
  ] as const)("429 returns a retry time, with %s", ([, headers, wait]) =>
    withHub(
      (hub) => Effect.map(unavailableOf(hub.inspect({ repo: "odd/small" }, none, "few")), (error) => assert.strictEqual(error.retryAfter, wait)),
      answered(status(429, headers))
    )
  )

  it.live.each([
    ["a disabled repository", status(403, { "x-error-message": "Access to this resource is disabled." }), "access_required", /disabled/],
    ["a repository that the law closed", status(451), "access_required", /legal reasons/],
    ["a token that was revoked", status(401), "access_required", /revoked/],
    ["a token that may not read it", status(403), "access_required", /may not read/]
  ] as const)("for %s is a refusal of its own", ([, fault, code, words]) =>
    withHub(
      (hub) =>
        Effect.map(refusalOf(hub.inspect({ repo: "odd/small" }, token, "few")), (refusal) => {
          assert.strictEqual(refusal.code, code)
          assert.match(refusal.message, words)
        }),
      answered(fault)
    )
  )

  it.live.each([
    ["redirects without end", status(302, { location: "/" })],
    ["redirects to a file", status(302, { location: "file:///etc/passwd" })],
    ["is no JSON", { kind: "body", body: Buffer.from("<html>") }],
    ["is JSON of another kind", { kind: "body", body: Buffer.from("[]") }],
    ["is compressed wrongly", { kind: "body", body: Buffer.from("no gzip"), headers: { "content-encoding": "gzip" } }]
  ] as const satisfies ReadonlyArray<readonly [string, HubFault]>)("that %s is the hub's fault, not the repository's", ([, fault]) =>
    withHub((hub) => Effect.asVoid(unavailableOf(hub.inspect({ repo: "odd/small" }, none, "few"))), answered(fault))
  )
})

describe("a license", () => {
  const licensed = (license: string) => makeRepository({ name: "odd/model", license, commits: [{ title: "Odd", files: tinyFiles(1) }] })
  const lists = { HUB_ALLOWED_LICENSES: "apache-2.0, mit", HUB_DENIED_LICENSES: "cc-by-nc-4.0", HUB_ASK_LICENSES: "llama3.1" }
  it.live.each([
    ["that is allowed is served", "apache-2.0", {}, null],
    ["that is on no list is refused where there is a list of allowed ones", "gemma", {}, /not on this installation's list of allowed/],
    ["that is denied is refused", "cc-by-nc-4.0", {}, /refused licenses/],
    ["that is denied is refused whatever was accepted", "cc-by-nc-4.0", { HUB_ACCEPTED_LICENSES: "odd/model" }, /refused licenses/],
    ["to be asked about waits for an administrator", "llama3.1", {}, /after an administrator of this installation has accepted it/],
    ["that was accepted for the repository is served", "llama3.1", { HUB_ACCEPTED_LICENSES: "Odd/Model" }, null],
    [
      "that was accepted for another repository is not",
      "llama3.1",
      { HUB_ACCEPTED_LICENSES: "odd/other" },
      /after an administrator of this installation has accepted it/
    ],
    ["that was accepted as such is served", "llama3.1", { HUB_ACCEPTED_LICENSES: "llama3.1" }, null]
  ] as const)("%s", ([, license, settings, words]) =>
    withHub(
      (hub) =>
        Effect.gen(function* () {
          const inspected = hub.inspect({ repo: "odd/model" }, none, "few")
          if (words === null) yield* inspected
          else {
            const refusal = yield* refusalOf(inspected)
            assert.strictEqual(refusal.code, "license_refused")
            assert.match(refusal.message, words)
          }
        }),
      { repositories: [licensed(license)], settings: { ...lists, ...settings } }
    )
  )
})
