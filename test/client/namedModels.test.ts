import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { DeploymentDetail } from "@seatrial/domain"
import { Deployments, Runs } from "@seatrial/store"
import { makeServing, newModel, walk } from "@seatrial/store/testing"
import { Deferred, Effect, Fiber, Schema } from "effect"
import { seatrial } from "../../packages/cli/test/runCommand.ts"
import { layerStage, makeCaller, Stage } from "../../packages/server/test/stage.ts"
import { type RunOptions, runProcess } from "../process/runProcess.ts"

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts")

/** Runs the command as a process that `watched` can interrupt. */
const seatrialProcess = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>, watched: Pick<RunOptions, "onError" | "onOutput">) =>
  runProcess([process.execPath, main, ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    ...watched
  })

const tenant = Effect.gen(function* () {
  const { port } = yield* Stage
  const caller = yield* makeCaller()
  const address = `http://127.0.0.1:${port}`
  return { ...caller, address, env: { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: caller.key } }
})

/** Runs the command, which must succeed, and returns its output. */
const output = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) {
  const ran = yield* seatrial(args, env)
  assert.strictEqual(ran.code, 0, `${args.join(" ")}: ${ran.err}`)
  return ran.out
})

// The tests start processes on a machine that other tests share.
const patience = 90_000

layer(layerStage(), { excludeTestServices: true })("the command takes the name of a model", (it) => {
  it.effect(
    "where it takes an ID: of a model or of its newest deployment",
    () =>
      Effect.gen(function* () {
        const { caller, env, slug } = yield* tenant
        const { modelId, operation } = yield* makeServing(caller, "k1")
        const detail = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ id: Schema.String })))
        for (const model of ["tiny", `${slug}/tiny`, modelId]) {
          assert.strictEqual(detail(yield* output(env, "models", "get", model, "--json")).id, modelId)
          for (const command of [["status"], ["deployments", "get"]])
            assert.strictEqual(detail(yield* output(env, ...command, model, "--json")).id, operation.id)
          assert.include(yield* output(env, "deployments", "list", "--model", model), operation.id)
          assert.strictEqual(yield* output(env, "requests", "list", "--model", model), "None.\n")
        }
        const foreign = yield* seatrial(["status", "elsewhere/tiny"], env)
        assert.deepStrictEqual([foreign.code, foreign.out], [1, ""])
        assert.match(foreign.err, /The organization has no model elsewhere\/tiny\./)
      }),
    patience
  )

  it.effect(
    "to disable, enable and delete it, and deletes nothing without a confirmation",
    () =>
      Effect.gen(function* () {
        const { caller, env } = yield* tenant
        yield* makeServing(caller, "k1")
        const status = Effect.map(output(env, "models", "list", "--json"), (text) => Schema.decodeUnknownSync(Models)(text).map((model) => model.status))
        assert.match(yield* output(env, "models", "disable", "tiny"), /^model +tiny\ndisabled +yes\n$/)
        assert.deepStrictEqual(yield* status, ["disabled"])
        assert.match(yield* output(env, "models", "enable", "tiny"), /^model +tiny\nenabled +yes\n$/)
        assert.deepStrictEqual(yield* status, ["active"])
        const asked = yield* seatrial(["models", "delete", "tiny"], env)
        assert.deepStrictEqual([asked.code, asked.out, yield* status], [2, "", ["active"]])
        assert.match(asked.err, /Nothing was changed\. Confirm with --yes\./)
        assert.match(yield* output(env, "models", "delete", "tiny", "--yes"), /^model +tiny\ndeleted +yes\n$/)
        assert.deepStrictEqual(yield* status, [])
        const again = yield* seatrial(["models", "delete", "tiny", "--yes"], env)
        assert.deepStrictEqual([again.code, again.out], [1, ""])
        assert.match(again.err, /\(not_found, req_/)
      }),
    patience
  )

  it.effect(
    "to show its newest run: history, and progress with sizes for people",
    () =>
      Effect.gen(function* () {
        const { caller, env, orgId } = yield* tenant
        const operation = yield* (yield* Deployments).create(newModel(caller, "k1"))
        yield* walk(caller, operation.id, "materializing")
        const download = { bytes: 1_610_612_736, total_bytes: 3_221_225_472, bytes_per_second: 134_217_728, seconds_left: 12, stalled: false }
        const progress = { phase: "materializing", message: "Downloads the weights.", queue: null, download } as const
        yield* (yield* Runs).recordProgress(operation.id, orgId, progress)
        assert.match(yield* output(env, "status", "tiny"), /^download +1\.50 GiB of 3\.00 GiB, 12 s left$/m)
        assert.match(yield* output(env, "logs", "tiny"), /phase +screening\n.* phase +materializing\n.* now +Downloads the weights\.\n$/)
        yield* (yield* Runs).enter({
          ...{ id: operation.id, orgId, from: "materializing", to: "failed", reason: "Test" },
          failure: { code: "download_failed", text: "The hub closed the connection." }
        })
        const ended = yield* output(env, "logs", "tiny")
        assert.match(ended, /phase +failed\n.* failure +download_failed: The hub closed the connection\.\n$/)
        assert.notInclude(ended, "Downloads the weights.")
      }),
    patience
  )
})

const Models = Schema.fromJsonString(Schema.Array(Schema.Struct({ status: Schema.String })))

layer(layerStage(), { excludeTestServices: true })("the command over the wire", (it) => {
  it.effect(
    "prints each deployment of a watched list again when it changes, until it is interrupted",
    () =>
      Effect.gen(function* () {
        const { caller, env, orgId } = yield* tenant
        const deployments = yield* Deployments
        const [first, second] = [yield* deployments.create(newModel(caller, "k1", "first")), yield* deployments.create(newModel(caller, "k2", "second"))]
        const listed = yield* Deferred.make<void>()
        const watching = yield* Effect.forkChild(
          seatrialProcess(["deployments", "list", "--watch"], env, {
            onOutput: (out, interrupt) => {
              if (out.includes(second.id)) Deferred.doneUnsafe(listed, Effect.void)
              if (out.includes("cancelled")) interrupt()
            }
          })
        )
        yield* Deferred.await(listed)
        yield* (yield* Runs).enter({ id: first.id, orgId, from: "screening", to: "cancelled", reason: "Test" })
        const ran = yield* Fiber.join(watching)
        const rows = ran.out.split("\n").flatMap((line) => /^(dep_\w+) .* (screening|cancelled) /.exec(line)?.slice(1, 3).join(" ") ?? [])
        assert.deepStrictEqual(rows, [`${first.id} screening`, `${second.id} screening`, `${first.id} cancelled`])
        assert.deepStrictEqual([ran.code, ran.err], [130, ""])
        const refused = yield* seatrial(["deployments", "list", "--watch", "--json"], env)
        assert.deepStrictEqual([refused.code, refused.out], [2, ""])
      }),
    patience
  )

  it.effect(
    "says how to call a model that it has deployed, at the address of the gateway",
    () =>
      Effect.gen(function* () {
        const { caller, env, orgId, slug } = yield* tenant
        const followed = yield* Deferred.make<string>()
        const deploying = yield* Effect.forkChild(
          seatrialProcess(
            ["deploy", "seatrial/tiny-chat", "--name", "called", "--wait", "--json"],
            { ...env, SEATRIAL_GATEWAY_ADDRESS: "http://gateway.example" },
            {
              onError: (err) => {
                if (err.includes("screening")) Deferred.doneUnsafe(followed, Effect.succeed(err))
              }
            }
          )
        )
        yield* Deferred.await(followed)
        const runs = yield* Runs
        const listed = yield* output(env, "deployments", "list")
        const id = (yield* runs.live).find((live) => listed.includes(live.id))?.id
        if (id === undefined) return yield* Effect.die(new Error("the run is not live"))
        yield* walk(caller, id, "activating")
        yield* runs.activate({ id, orgId, from: "activating" })
        const ran = yield* Fiber.join(deploying)
        assert.strictEqual(ran.code, 0, ran.err)
        const { model } = Schema.decodeUnknownSync(Schema.fromJsonString(DeploymentDetail))(ran.out)
        assert.include(["called", `${slug}/called`], model)
        assert.include(ran.err, `\nCall it with: seatrial chat ${model}\n`)
        assert.notInclude(ran.err, "first set SEATRIAL_API_KEY")
        assert.include(ran.err, `curl http://gateway.example/v1/chat/completions `)
        assert.include(ran.err, `{"model":"${model}",`)
      }),
    patience
  )

  it.effect("prints the address of the API's page, without a browser if it is not at a terminal", () =>
    Effect.gen(function* () {
      const { address, call, env } = yield* Effect.zipWith(tenant, Stage, (of, { call }) => ({ ...of, call }))
      for (const flags of [[], ["--print"]]) assert.strictEqual(yield* output(env, "open", ...flags), `${address}/docs\n`)
      assert.strictEqual((yield* call("GET", "/docs")).status, 200)
    })
  )
})
