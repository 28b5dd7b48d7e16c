import { createServer, type RequestListener, type Server } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { noTrace, seatrial } from "./runCommand.ts"

/** Runs the command against an API with that behavior. */
const against = (handler: RequestListener, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const opened = createServer(handler).listen(0, "127.0.0.1", () => resume(Effect.succeed(opened)))
      }),
      (opened) => Effect.sync(() => opened.close())
    )
    const bound = server.address()
    const address = `http://127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`
    return yield* seatrial(args, { SEATRIAL_ADDRESS: address, SEATRIAL_API_KEY: "k" })
  }).pipe(Effect.scoped)

const id = "mdl_01m7yy6j3ve4mac6enberh3t2c"
const model = {
  id,
  object: "org_model",
  slug: "tiny-chat",
  display_name: "tiny-chat",
  status: "active",
  visibility: "private",
  hf_repo: "seatrial/tiny-chat",
  hf_revision: "a".repeat(40),
  created_at: "2026-03-02T09:12:03.195Z",
  updated_at: "2026-03-02T09:12:40.871Z",
  revision: null
}
const scaling = { replicas: 2, status: { granted: 1, ready: 1, limit: "no_gpus" } }

const json = { "content-type": "application/json" }
const error = { message: "There is no such record.", type: "not_found_error", code: "not_found", param: null, request_id: "req_1" }

describe("commands about a model", () => {
  const commands = [["scale"], ["scale", "--replicas", "2"], ["models", "disable"], ["models", "enable"], ["models", "delete", "--yes"]]
  for (const command of commands) {
    it.live(`name a model that does not exist: ${command.join(" ")}`, () =>
      Effect.gen(function* () {
        const ran = yield* against((_, response) => response.writeHead(404, json).end(JSON.stringify({ error })), ...command, "ghost")
        assert.strictEqual(ran.code, 1)
        assert.include(ran.err, "The organization has no model ghost. `seatrial models list` lists its models. (not_found, req_1)")
        noTrace(ran)
      })
    )
  }

  it.live("take a number of engines, or limits with the lower one first", () =>
    Effect.gen(function* () {
      const bodies: Array<string> = []
      const api: RequestListener = (request, response) => {
        request.setEncoding("utf8").on("data", (body: string) => bodies.push(`${request.method} ${body}`))
        request.on("end", () => response.writeHead(200, json).end(JSON.stringify({ ...scaling, min_replicas: 1, max_replicas: 4, target: 0.5 })))
      }
      const ran = yield* against(api, "scale", id, "--min", "1", "--max", "4", "--target", "0.5")
      assert.strictEqual(ran.code, 0, ran.err)
      assert.deepStrictEqual(bodies, ['PUT {"min_replicas":1,"max_replicas":4,"target":0.5}'])
      assert.notInclude(ran.out, "granted")
      for (const [wrong, message] of [
        ["--min 4 --max 1", "--min must be below --max."],
        ["--min 1", "Use --min and --max together."],
        ["--target 0.5", "--target requires --min and --max."],
        ["--replicas 2 --max 4", "Use --replicas alone, or --min and --max with or without --target."],
        ["--replicas 65", "--replicas must be 1 to 64."],
        ["--min -1 --max 4", "--min must be 0 to 64."],
        ["--min 1 --max 65", "--max must be 1 to 64."],
        ["--min 1 --max 4 --target 2", "--target must be 0.1 to 1."]
      ] as const) {
        const refused = yield* against(api, "scale", id, ...wrong.split(" "))
        assert.strictEqual(refused.code, 2, wrong)
        assert.include(refused.err, message)
      }
      assert.lengthOf(bodies, 1)
    })
  )

  it.live("show the load of one model by engine, and of all by model", () =>
    Effect.gen(function* () {
      const load = {
        running: 5,
        waiting: 2,
        capacity: { requests: 4, source: "latency_limit" },
        desired: 2,
        ready: 1,
        engines: [{ pod: "dep-1-engine-0", reachable: true, running: 5 }]
      }
      const ran = yield* against((_, response) => response.writeHead(200, json).end(JSON.stringify(load)), "top", id)
      assert.strictEqual(ran.code, 0, ran.err)
      assert.match(ran.out, /dep-1-engine-0 +5 +4 +yes/u)
      const none = yield* against((_, response) => response.writeHead(200, json).end(JSON.stringify({ object: "list", data: [] })), "top")
      assert.include(none.out, "None.")
    })
  )

  it.live("show how many engines a model has and what limits them", () =>
    Effect.gen(function* () {
      const answers: Readonly<Record<string, unknown>> = { [`/v1/org/models/${id}`]: model, [`/v1/models/${id}/scaling`]: scaling }
      const api: RequestListener = ({ url = "" }, response) => response.writeHead(200, json).end(JSON.stringify(answers[url]))
      const ran = yield* against(api, "models", "get", id, "--json")
      assert.strictEqual(ran.code, 0, ran.err)
      assert.deepInclude(JSON.parse(ran.out), { id, engines: { desired: 2, granted: 1, ready: 1, limit: "no_gpus" } })
      const text = yield* against(api, "scale", id)
      assert.match(text.out, /no_gpus/u)
    })
  )
})
