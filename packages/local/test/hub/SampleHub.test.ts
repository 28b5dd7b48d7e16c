import { createHash } from "node:crypto"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import { SampleHub, sampleHubToken } from "../../src/hub/SampleHub.ts"
import { sampleRepositories } from "../../src/hub/sampleRepositories.ts"

const ask = Effect.fnUntraced(function* (path: string, init: RequestInit = {}) {
  const { address } = yield* SampleHub
  return yield* Effect.promise(async () => {
    const response = await fetch(`${address}${path}`, init)
    const body = Buffer.from(await response.arrayBuffer())
    return { status: response.status, header: (name: string) => response.headers.get(name), body }
  })
})
const Tree = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({
      path: Schema.String,
      size: Schema.Int,
      oid: Schema.String,
      lfs: Schema.optionalKey(Schema.Struct({ oid: Schema.String, size: Schema.Int }))
    })
  )
)
const tree = Effect.fnUntraced(function* (path: string) {
  const { body, header } = yield* ask(path)
  return { entries: yield* Schema.decodeEffect(Tree)(body.toString()), next: /<([^>]+)>; rel="next"/.exec(header("link") ?? "")?.[1] }
})

layer(SampleHub.layer({ port: 0, pageSize: 3 }))("the sample hub", (it) => {
  it.effect("states in plain text that its repositories are simulated", () =>
    Effect.gen(function* () {
      const { body, header } = yield* ask("/")
      assert.match(header("content-type") ?? "", /^text\/plain/)
      assert.match(body.toString(), /sample hub.*simulated/)
    })
  )

  it.effect("serves files with the listed git blob ID or SHA-256, on pages that link to each other", () =>
    Effect.gen(function* () {
      const { address } = yield* SampleHub
      let path: string | undefined = "/api/models/seatrial/tiny-chat/tree/v1?recursive=true"
      let pages = 0
      let files = 0
      while (path !== undefined) {
        const page: { readonly entries: typeof Tree.Type; readonly next: string | undefined } = yield* tree(path)
        assert.isAtMost(page.entries.length, 3)
        for (const { lfs, oid, path, size } of page.entries) {
          const { body, header } = yield* ask(`/seatrial/tiny-chat/resolve/v1/${path}`)
          assert.strictEqual(body.length, size)
          const hash = lfs === undefined ? createHash("sha1").update(`blob ${size}\0`) : createHash("sha256")
          assert.strictEqual(hash.update(body).digest("hex"), lfs?.oid ?? oid)
          assert.strictEqual(header("etag"), `"${lfs?.oid ?? oid}"`)
          assert.strictEqual(header("x-linked-size"), lfs === undefined ? null : String(size))
          files++
        }
        pages++
        path = page.next?.slice(address.length)
      }
      assert.strictEqual(files, 7)
      assert.strictEqual(pages, 3)
    })
  )

  it.effect("answers HEAD and single ranges, also for virtual bytes", () =>
    Effect.gen(function* () {
      const shard = "/seatrial/giant-70b/resolve/main/model-00001-of-00030.safetensors"
      const head = yield* ask(shard, { method: "HEAD" })
      assert.strictEqual(head.body.length, 0)
      const size = Number(head.header("content-length"))
      assert.isAbove(size, 4e9)
      const commit = head.header("x-repo-commit")
      assert.match(commit ?? "", /^[0-9a-f]{40}$/)
      for (const [range, expected] of [
        ["bytes=0-9", `bytes 0-9/${size}`],
        [`bytes=${size - 4}-`, `bytes ${size - 4}-${size - 1}/${size}`],
        ["bytes=-5", `bytes ${size - 5}-${size - 1}/${size}`],
        [`bytes=${size - 2}-${size + 100}`, `bytes ${size - 2}-${size - 1}/${size}`]
      ] as const) {
        const part = yield* ask(shard, { headers: { range } })
        assert.deepStrictEqual([part.status, part.header("content-range")], [206, expected])
        assert.strictEqual(part.body.length, Number(part.header("content-length")))
      }
      const beyond = yield* ask(shard, { headers: { range: `bytes=${size}-` } })
      assert.deepStrictEqual([beyond.status, beyond.header("content-range")], [416, `bytes */${size}`])
    })
  )

  it.effect("reports missing and denied resources in X-Error-Code", () =>
    Effect.gen(function* () {
      const gated = "/seatrial/tiny-chat-gated/resolve/main/config.json"
      const cases = [
        ["/api/models/seatrial/absent", {}, 404, "RepoNotFound"],
        ["/api/models/seatrial/tiny-chat/revision/absent", {}, 404, "RevisionNotFound"],
        ["/seatrial/tiny-chat/resolve/main/absent", {}, 404, "EntryNotFound"],
        [gated, {}, 401, "GatedRepo"],
        [gated, { headers: { authorization: "Bearer hf_wrong" } }, 403, "GatedRepo"],
        [gated, { headers: { authorization: `Bearer ${sampleHubToken}` } }, 200, null]
      ] as const
      for (const [path, init, status, code] of cases) {
        const answer = yield* ask(path, init)
        assert.deepStrictEqual([answer.status, answer.header("x-error-code")], [status, code])
      }
    })
  )

  it.effect("returns details of paths that are requested as JSON or as a form", () =>
    Effect.gen(function* () {
      for (const body of [JSON.stringify({ paths: ["config.json", "absent"], expand: false }), new URLSearchParams({ paths: "config.json" })]) {
        const answer = yield* ask("/api/models/seatrial/tiny-chat/paths-info/main", { method: "POST", body })
        const entries = Schema.decodeOption(Tree)(answer.body.toString())
        assert.deepStrictEqual(
          Option.getOrThrow(entries).map(({ path }) => path),
          ["config.json"]
        )
      }
    })
  )
})

describe("the sample repositories", () => {
  it("have the same commits on every machine", () => {
    const commits = () => sampleRepositories().map(({ commits, name }) => [name, commits.map(({ id }) => id)])
    assert.deepStrictEqual(commits(), commits())
    assert.strictEqual(new Set(sampleRepositories().flatMap(({ commits }) => commits.map(({ id }) => id))).size, 11)
  })
})
