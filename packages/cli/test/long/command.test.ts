import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { gatewaySettings } from "@seatrial/gateway/settings"
import { Hub, manifestSha256 } from "@seatrial/hub"
import { type HubFault, type HubRequest, SampleHub } from "@seatrial/local"
import { operatorSettings } from "@seatrial/operator/settings"
import { serverSettings } from "@seatrial/server/settings"
import { ConfigProvider, Context, Effect, Layer, Option } from "effect"
import { noTrace, seatrial, seatrialProcess } from "../runCommand.ts"

describe("wrong use", () => {
  const wrong: ReadonlyArray<readonly [promise: string, args: ReadonlyArray<string>, says: RegExp, run: typeof seatrial]> = [
    ["an unknown command is reported by name", ["deplyo"], /deplyo/, seatrialProcess],
    ["a missing argument is reported by name", ["preview"], /repository/, seatrial],
    ["a missing receipt file is reported by name", ["receipts", "verify", "/nonexistent.jws"], /The file \/nonexistent\.jws does not exist\./, seatrial],
    ["a folder instead of a receipt file is reported by name", ["receipts", "verify", "/"], /The file \/ is a folder\./, seatrial],
    ["without a configured API the command says how to configure one", ["status", "dep_x"], /SEATRIAL_ADDRESS/, seatrialProcess],
    ["without Postgres the administration says how to configure it", ["admin", "orgs", "list"], /DATABASE_URL/, seatrialProcess]
  ]
  for (const [promise, args, says, run] of wrong) {
    it.live(promise, () =>
      Effect.gen(function* () {
        const ran = yield* run(args)
        assert.strictEqual(ran.code, 2)
        assert.strictEqual(ran.out, "")
        assert.match(ran.err, says)
        noTrace(ran)
      })
    )
  }

  it.live("a deploy with neither or both of a repository and a model is refused before a request is sent", () =>
    Effect.gen(function* () {
      for (const args of [["deploy"], ["deploy", "a/b", "--model-id", "mdl_x"]]) {
        const ran = yield* seatrial(args, { SEATRIAL_ADDRESS: "http://127.0.0.1:9", SEATRIAL_API_KEY: "k" })
        assert.strictEqual(ran.code, 2)
        assert.match(ran.out + ran.err, /either a repository or, with --model-id, a model/)
      }
    })
  )

  it.live("a delete without a terminal requires --yes", () =>
    Effect.gen(function* () {
      const nobody = { SEATRIAL_ADDRESS: "http://127.0.0.1:9", SEATRIAL_API_KEY: "k" }
      const unconfirmed = yield* seatrial(["models", "delete", "tiny"], nobody)
      assert.strictEqual(unconfirmed.code, 2)
      assert.match(unconfirmed.out + unconfirmed.err, /tiny will be deleted permanently.*Nothing was changed\. Confirm with --yes\./)
      const sent = yield* seatrial(["models", "delete", "tiny", "--yes"], nobody)
      assert.strictEqual(sent.code, 4)
    })
  )

  it.live("an unreachable server is reported in a sentence, without a stack trace", () =>
    Effect.gen(function* () {
      const ran = yield* seatrial(["status", "dep_x"], { SEATRIAL_ADDRESS: "http://127.0.0.1:9", SEATRIAL_API_KEY: "k" })
      assert.strictEqual(ran.code, 4)
      assert.match(ran.out + ran.err, /does not answer/)
      noTrace(ran)
    })
  )
})

describe("--help", () => {
  it.live("lists every command, and completions include lazily loaded commands", () =>
    Effect.gen(function* () {
      const [help, completions, admin] = yield* Effect.all([seatrial(["--help"]), seatrial(["--completions", "bash"]), seatrial(["admin", "--help"])], {
        concurrency: 2
      })
      for (const name of ["deploy", "admin", "server", "fetch", "migrate"]) assert.match(help.out, new RegExp(`^  ${name} {2,}\\S`, "m"))
      for (const word of ["hub-connections", "rotate-key", "--manifest", "--wait"]) assert.include(completions.out, word)
      assert.include(admin.out, "hub-connections")
    })
  )

  const programs = [
    ["server", serverSettings],
    ["operator", operatorSettings],
    ["gateway", gatewaySettings]
  ] as const
  for (const [program, settings] of programs) {
    it.live(`of ${program} lists every setting`, () =>
      Effect.gen(function* () {
        const { code, out } = yield* seatrial([program, "--help"])
        assert.strictEqual(code, 0)
        for (const { name } of settings) assert.include(out, name)
        for (const name of ["DATABASE_URL", "DATABASE_POOL_SIZE", "DATABASE_APPLICATION_NAME"]) assert.include(out, name)
      })
    )
  }
})

describe("fetch", () => {
  const directory = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-fetch-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const run = Effect.fnUntraced(function* (corrupt: boolean, manifest?: string) {
    // After the header, which screening reads.
    const faults = ({ file }: HubRequest): HubFault | undefined =>
      corrupt && file === "model.safetensors" ? { kind: "corrupt", offset: 1_000_000 } : undefined
    const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0, faults })), SampleHub)
    const config = ConfigProvider.layer(ConfigProvider.fromUnknown({ HF_ENDPOINT: hub.address }))
    const facts = yield* Effect.provide(
      Effect.flatMap(Hub, (service) => service.inspect({ repo: "seatrial/tiny-chat" }, Option.none())),
      Hub.layer.pipe(Layer.provide(config))
    )
    const target = join(yield* directory, "weights")
    const args = ["fetch", "--repo", facts.repo, "--commit", facts.commit, "--directory", target, "--manifest", manifest ?? manifestSha256(facts.files)]
    return { ran: yield* (corrupt ? seatrialProcess : seatrial)(args, { HF_ENDPOINT: hub.address, HUB_RETRY_DELAY: "1 millis" }), target, facts }
  })

  it.live("reports a refusal of the hub in the terms of the token's owner", () =>
    Effect.gen(function* () {
      const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0 })), SampleHub)
      const target = join(yield* directory, "weights")
      const args = ["fetch", "--repo", "seatrial/nothing", "--commit", "a".repeat(40), "--directory", target, "--manifest", "0".repeat(64)]
      const byUser = yield* seatrial(args, { HF_ENDPOINT: hub.address })
      assert.include(byUser.err, "repository_not_found: The hub has no repository seatrial/nothing, or does not show it to the user who owns this API key.")
      const byObject = yield* seatrial([...args, "--token-shared-by=acme"], { HF_ENDPOINT: hub.address })
      assert.include(byObject.err, "repository_not_found: The hub has no repository seatrial/nothing, or does not show it to the organization acme.")
    }).pipe(Effect.scoped)
  )

  it.live("downloads the pinned files completely", () =>
    Effect.gen(function* () {
      const { facts, ran, target } = yield* run(false)
      assert.strictEqual(ran.code, 0, ran.err)
      for (const { path } of facts.files) assert.include(readdirSync(target), path)
    }).pipe(Effect.scoped)
  )

  it.live("fails with exit code 3 and a code in its last line if the bytes differ from the commit", () =>
    Effect.gen(function* () {
      const { ran } = yield* run(true)
      assert.strictEqual(ran.code, 3)
      assert.match(ran.out + ran.err, /weights_mismatch: 1 of \d+ files differ/)
    }).pipe(Effect.scoped)
  )

  it.live("fails before the download if the file list differs from the one at screening", () =>
    Effect.gen(function* () {
      const { ran } = yield* run(false, "0".repeat(64))
      assert.strictEqual(ran.code, 3)
      assert.match(ran.out + ran.err, /weights_mismatch/)
    }).pipe(Effect.scoped)
  )
})
