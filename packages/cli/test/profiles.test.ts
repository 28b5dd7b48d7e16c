import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted, Schema } from "effect"
import { chooseAccess } from "../src/apiAccess.ts"
import { noTrace, seatrial } from "./runCommand.ts"

const requestId = "req_01m83hygpbf3xt6btsrq0196xn"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-profiles-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** A server that accepts only the key `good`, for the call that `login` makes. */
const listening = Effect.acquireRelease(
  Effect.callback<{ readonly address: string; readonly close: () => void }>((resume) => {
    const server = createServer((request, response) => {
      const isKnown = request.headers.authorization === "Bearer good"
      const error = { message: "The API key is invalid.", type: "authentication_error", code: "invalid_api_key", param: null, request_id: requestId }
      response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json", "x-request-id": requestId, "www-authenticate": "Bearer" })
      response.end(JSON.stringify(isKnown ? { object: "list", data: [] } : { error }))
    })
    server.listen(0, "127.0.0.1", () => {
      const bound = server.address()
      const port = typeof bound === "object" && bound !== null ? bound.port : 0
      resume(Effect.succeed({ address: `http://127.0.0.1:${port}`, close: () => void server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const Stored = Schema.fromJsonString(
  Schema.Struct({ current: Schema.NullOr(Schema.String), profiles: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.String)) })
)

describe("seatrial login", () => {
  it.live("stores a valid key in a file that only its owner can read, never prints it, and logout removes it", () =>
    Effect.gen(function* () {
      const [home, { address }] = [yield* folder, yield* listening]
      const env = { HOME: home, SEATRIAL_API_KEY: "good" }
      const file = join(home, ".config/seatrial/profiles.json")
      const done = yield* seatrial(["login", `${address}/`, "--profile", "work", "--gateway", "https://models.example"], env)
      assert.strictEqual(done.code, 0, done.err)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const stored = Schema.decodeUnknownSync(Stored)(readFileSync(file, "utf8"))
      assert.deepStrictEqual(stored, { current: "work", profiles: { work: { address, api_key: "good", gateway: "https://models.example" } } })

      const listed = yield* seatrial(["profiles", "list"], { HOME: home })
      assert.match(listed.out, /work +yes/)
      assert.notInclude(listed.out + listed.err + done.out + done.err, "good")
      // Without a key in the environment, the key of the profile is used.
      assert.strictEqual((yield* seatrial(["catalog", "--own"], { HOME: home })).code, 0)

      const unknown = yield* seatrial(["profiles", "use", "other"], { HOME: home })
      assert.match(unknown.err, /There is no profile other/)
      noTrace(unknown)
      assert.strictEqual((yield* seatrial(["logout"], { HOME: home })).code, 0)
      assert.deepStrictEqual(Schema.decodeUnknownSync(Stored)(readFileSync(file, "utf8")), { current: null, profiles: {} })
    }).pipe(Effect.scoped)
  )

  it.live("stores nothing if the API refuses the key, and never overwrites an invalid file", () =>
    Effect.gen(function* () {
      const [home, { address }] = [yield* folder, yield* listening]
      const refused = yield* seatrial(["login", address], { HOME: home, SEATRIAL_API_KEY: "wrong" })
      assert.strictEqual(refused.code, 1)
      assert.match(refused.err, /invalid_api_key/)
      const unreadable = yield* seatrial(["login", "ftp://api.example"], { HOME: home, SEATRIAL_API_KEY: "good" })
      assert.strictEqual(unreadable.code, 2)
      assert.match(unreadable.err, /ftp:\/\/api\.example is not an address of the API\. It must start with https:/)
      assert.isEmpty((yield* seatrial(["profiles", "list", "--json"], { HOME: home })).out.trim().replace("[]", ""))
      writeFileSync(join(home, "profiles.json"), "")
      const broken = { XDG_CONFIG_HOME: home, SEATRIAL_API_KEY: "good" }
      assert.strictEqual((yield* seatrial(["login", address], broken)).code, 0)
      writeFileSync(join(home, "seatrial/profiles.json"), "{")
      const rejected = yield* seatrial(["login", address], broken)
      assert.strictEqual(rejected.code, 2)
      assert.strictEqual(readFileSync(join(home, "seatrial/profiles.json"), "utf8"), "{")
    }).pipe(Effect.scoped)
  )
})

describe("a stored key", () => {
  const local = { address: "http://127.0.0.1:8080", api_key: "local" }
  const work = { address: "https://work.example", api_key: "work", gateway: "https://models.example" }
  const home = { address: "https://home.example", api_key: "home" }
  const cases: ReadonlyArray<readonly [promise: string, address: string | null, local: boolean, selected: boolean, expected: ReadonlyArray<string | null>]> = [
    ["is that of the current profile if nothing else is configured", null, false, false, ["https://home.example", "https://home.example", "home"]],
    ["is that of the system in this folder before that of the current profile", null, true, false, [local.address, local.address, "local"]],
    ["is that of the profile in the environment before all others", null, true, true, [work.address, "https://models.example", "work"]],
    ["is sent to the address that it is stored with", home.address, true, false, [home.address, home.address, "home"]],
    ["is not sent to any other address", "https://elsewhere.example", true, true, ["https://elsewhere.example", "https://elsewhere.example", null]]
  ]
  for (const [promise, address, isLocal, isNamed, expected] of cases) {
    it(promise, () => {
      const profile = { selected: isNamed ? Option.some(work) : Option.none(), current: Option.some(home) }
      const chosen = chooseAccess({ address: Option.fromNullishOr(address), key: Option.none() }, isLocal ? Option.some(local) : Option.none(), profile)
      assert.deepStrictEqual(
        [Option.getOrNull(chosen.address), Option.getOrNull(chosen.gateway), Option.getOrNull(Option.map(chosen.key, Redacted.value))],
        expected
      )
    })
  }
})
