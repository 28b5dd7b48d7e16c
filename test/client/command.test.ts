import { createHmac } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { SeatrialClient } from "@seatrial/client"
import {
  Deployment,
  DeploymentDetail,
  Ids,
  ModelId,
  type Phase,
  Receipt,
  RequestId,
  RevisionId,
  SignedReceipt,
  workingPhases,
  zeroPrices
} from "@seatrial/domain"
import { Metering, Runs } from "@seatrial/store"
import { beginRequest } from "@seatrial/store/testing"
import { Deferred, Effect, Fiber, Redacted, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { seatrial } from "../../packages/cli/test/runCommand.ts"
import { layerStage, makeTenant, Stage } from "../../packages/server/test/stage.ts"
import { type RunOptions, runProcess } from "../process/runProcess.ts"

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts")
const source = { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" } as const
const decode = <A>(schema: Schema.Codec<A, unknown>, text: string) =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema), { onExcessProperty: "error" })(text)

/** Runs the command as a process. `onError` gets its standard error so far and can interrupt it. */
const seatrialProcess = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>, onError?: RunOptions["onError"]) =>
  runProcess([process.execPath, main, ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    ...(onError === undefined ? {} : { onError })
  })

const tenant = Effect.gen(function* () {
  const { port } = yield* Stage
  const { key, orgId } = yield* makeTenant()
  const address = `http://127.0.0.1:${port}`
  const client = yield* SeatrialClient.make({ address, apiKey: Redacted.make(key) }).pipe(Effect.provide(FetchHttpClient.layer))
  return { orgId, address, client, env: { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: key } }
})

// The tests start processes on a machine that other tests share.
const patience = 90_000

layer(layerStage(), { excludeTestServices: true })("the command", (it) => {
  it.effect(
    "lists the requested number of rows, as a table or as the API's JSON",
    () =>
      Effect.gen(function* () {
        const { client, env } = yield* tenant
        for (let index = 0; index < 4; index++) yield* client.deployments.create({ source, model_name: `model-${index}` })
        const all = yield* Stream.runCollect(client.org.deployments.list())
        const list = ["deployments", "list", "--status", "running", "--limit"]
        const [json, table] = yield* Effect.all([seatrial([...list, "3", "--json"], env), seatrial([...list, "2"], env)], { concurrency: 2 })
        assert.strictEqual(json.code, 0, json.err)
        assert.deepStrictEqual(decode(Schema.Array(Deployment), json.out), all.slice(0, 3))
        const lines = table.out.trimEnd().split("\n")
        assert.strictEqual(lines.length, 3)
        assert.match(lines[0] ?? "", /^ID +MODEL +STATUS +CREATED +ENDED +COMMIT +FAILURE$/)
        assert.isTrue(lines[1]?.startsWith(`${all[0]?.id}  ${all[0]?.model}`))
        assert.notMatch(table.out, /[{}[\]"]/)
      }),
    patience
  )

  it.effect(
    "exits with 1 and the API's message if the API refuses, and with 2 on wrong use",
    () =>
      Effect.gen(function* () {
        const { env } = yield* tenant
        const runs = [seatrial(["receipts", "get", "req_x"], env), seatrial(["requests", "list", "--from", "yesterday"], env)] as const
        const [missing, wrong] = yield* Effect.all(runs, { concurrency: 2 })
        assert.strictEqual(missing.code, 1)
        assert.match(missing.err, /\(not_found, req_[0-9a-z]{26}\)/)
        assert.strictEqual(missing.out, "")
        assert.strictEqual(wrong.code, 2)
        assert.match(wrong.err, /--from yesterday/)
      }),
    patience
  )

  it.effect(
    "stores a signed receipt and verifies it offline",
    () =>
      Effect.gen(function* () {
        const { port } = yield* Stage
        const metering = yield* Metering
        const { key, keyId, orgId } = yield* makeTenant()
        const id = yield* (yield* Ids).make(RequestId)
        const modelId = Schema.decodeSync(ModelId)("mdl_0189000000000000000000000a")
        const revisionId = Schema.decodeSync(RevisionId)("rev_01890000000000000000000000")
        const start = { id, orgId, keyId, endpoint: "/v1/completions", streamed: false, modelId, model: "tenant/tiny", revisionId }
        yield* beginRequest(metering, start)
        yield* metering.end({
          ...{ ...start, statusCode: 200, usage: { input_tokens: 3, output_tokens: 4, cache_read_tokens: null, cache_write_tokens: 0 }, ttftMs: 1 },
          ...{ latencyMs: 2, finishReason: "stop", error: null, note: null },
          receipt: { prices: zeroPrices, hfRevision: "c0ffee", engineVersion: "reference-0.1.0" }
        })
        const salt = Buffer.alloc(16, 9).toString("base64url")
        const digestOf = (text: string) => createHmac("sha256", Buffer.alloc(16, 9)).update(text).digest("base64url")
        const digests = { alg: "hmac-sha-256", request: digestOf('{"prompt":"a"}'), answer: digestOf("data: b\n\n") } as const
        const opened = { ...start, id: yield* (yield* Ids).make(RequestId) }
        yield* metering.end({
          ...{ ...opened, statusCode: 200, usage: { input_tokens: 3, output_tokens: 4, cache_read_tokens: null, cache_write_tokens: 0 }, ttftMs: 1 },
          ...{ latencyMs: 2, finishReason: "stop", error: null, note: null },
          receipt: { prices: zeroPrices, hfRevision: "c0ffee", engineVersion: "reference-0.1.0", digests }
        })
        const address = `http://127.0.0.1:${port}`
        const folder = mkdtempSync(join(tmpdir(), "receipts-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
        const store = (name: string, text: string) => {
          writeFileSync(join(folder, name), text)
          return join(folder, name)
        }
        const signed = yield* seatrialProcess(["receipts", "get", id, "--signed"], { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: key })
        assert.strictEqual(signed.code, 0, signed.err)
        const jws = decode(SignedReceipt, signed.out)
        const client = yield* SeatrialClient.make({ address, apiKey: Redacted.make(key) }).pipe(Effect.provide(FetchHttpClient.layer))
        const receipt = yield* client.org.receipts.get(id)
        const keys = store("jwks.json", JSON.stringify(yield* client.system.signingKeys()))
        const file = store("receipt.jws", signed.out)
        const plain = store("receipt.json", JSON.stringify(receipt, null, 2))
        const cheaper = store("cheaper.json", JSON.stringify({ ...receipt, cost_micros: "1" }))
        const signature = `${jws.protected}..${jws.signature}`
        const verify = ["receipts", "verify"]
        const [offline, fetched, detached, changed, noKeys] = yield* Effect.all(
          [
            seatrial([...verify, file, "--keys", keys, "--json"], {}),
            seatrial([...verify, file], { SEATRIAL_ADDRESS: address }),
            seatrial([...verify, plain, "--signature", signature, "--keys", keys], {}),
            seatrial([...verify, cheaper, "--signature", signature, "--keys", keys], {}),
            seatrial([...verify, file, "--keys", plain], {})
          ],
          { concurrency: 2 }
        )
        assert.deepStrictEqual([offline.code, decode(Receipt, offline.out)], [0, receipt], offline.err)
        assert.match(offline.err, /^Verified: signed by the key [\w-]{43}\. Issued by seatrial to the organization org_\w+\.\n$/)
        assert.deepStrictEqual([fetched.code, fetched.err], [0, offline.err])
        assert.strictEqual(detached.code, 0)
        assert.match(detached.err, /formatting differs from the signed text/)
        assert.deepStrictEqual([changed.code, changed.out], [3, ""])
        assert.match(changed.err, /NOT VERIFIED \(not_genuine\): /)
        assert.deepStrictEqual([noKeys.code, noKeys.out], [2, ""])
        assert.match(noKeys.err, /is not a JWK Set/)

        const env = { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: key }
        const [request, answer, other] = [store("request.json", '{"prompt":"a"}'), store("answer.sse", "data: b\n\n"), store("other.sse", "data: c\n\n")]
        const open = [...verify, opened.id, "--request", request]
        const [both, changedAnswer, wrongSalt, saltless, without] = yield* Effect.all(
          [
            seatrial([...open, "--answer", answer, "--salt", salt], env),
            seatrial([...open, "--answer", other, "--salt", salt], env),
            seatrial([...open, "--salt", Buffer.alloc(16, 8).toString("base64url")], env),
            seatrial(open, env),
            seatrial([...verify, id, "--request", request, "--salt", salt], env)
          ],
          { concurrency: 2 }
        )
        assert.deepStrictEqual([both.code, both.err], [0, `${offline.err.trimEnd()} The request and the answer match the receipt.\n`])
        assert.deepStrictEqual([changedAnswer.code, changedAnswer.out], [3, ""])
        assert.match(changedAnswer.err, /NOT VERIFIED \(different\): The answer or the salt does not match the receipt/)
        assert.deepStrictEqual([wrongSalt.code, wrongSalt.out], [3, ""])
        assert.match(wrongSalt.err, /NOT VERIFIED \(different\): The request /)
        assert.deepStrictEqual([saltless.code, saltless.out], [2, ""])
        assert.deepStrictEqual([without.code, without.out], [3, ""])
        assert.match(without.err, /NOT VERIFIED \(no_digest\): /)
      }),
    patience
  )

  it.effect(
    "shows the public catalog without a key",
    () =>
      Effect.gen(function* () {
        const { address } = yield* tenant
        const ran = yield* seatrialProcess(["catalog"], { SEATRIAL_ADDRESS: address })
        assert.deepStrictEqual([ran.code, ran.out], [0, "None.\n"])
      }),
    patience
  )

  it.effect(
    "follows a run to its end: one line per phase, the record, and exit code 1 if it failed",
    () =>
      Effect.gen(function* () {
        const { client, env, orgId } = yield* tenant
        const { id } = (yield* client.deployments.create({ source })).operation
        const followed = yield* Deferred.make<void>()
        const watching = yield* Effect.forkChild(
          seatrialProcess(["deployments", "watch", id, "--json"], env, (err) => {
            if (err.includes("screening")) Deferred.doneUnsafe(followed, Effect.void)
          })
        )
        yield* Deferred.await(followed)
        const runs = yield* Runs
        const run = (yield* runs.live).find((candidate) => candidate.id === id)?.id
        if (run === undefined) return yield* Effect.die(new Error("the run is not live"))
        let from: Phase = "screening"
        for (const to of [...workingPhases.slice(1), "failed" as const]) {
          const failure = to === "failed" ? { failure: { code: "checks_failed", text: "1 of 9" } } : {}
          yield* runs.enter({ id: run, orgId, from, to, reason: "Test", ...failure })
          from = to
        }
        const ran = yield* Fiber.join(watching)
        assert.strictEqual(ran.code, 1)
        assert.match(ran.err, /ended as failed: checks_failed: 1 of 9/)
        const shown = ran.err.split("\n").flatMap((line) => /Z {2}(\w+)$/.exec(line)?.[1] ?? [])
        assert.deepStrictEqual(shown, [...workingPhases, "failed"])
        assert.deepStrictEqual(decode(DeploymentDetail, ran.out), yield* client.org.deployments.get(id))
      }),
    patience
  )

  it.effect(
    "interrupted while it follows leaves the deployment running, and says so",
    () =>
      Effect.gen(function* () {
        const { client, env } = yield* tenant
        const ran = yield* seatrialProcess(["deploy", source.repo, "--wait"], env, (err, interrupt) => {
          // Interrupt only once. The message about the interrupt arrives here as well.
          if (err.includes("screening") && !err.includes("continues")) interrupt()
        })
        assert.strictEqual(ran.code, 130)
        assert.match(ran.err, /dep_\w+ continues/)
        const [deployment] = (yield* client.org.deployments.page()).data
        assert.strictEqual(deployment?.status, "screening")
      }),
    patience
  )
})
