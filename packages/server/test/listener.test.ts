import { assert, layer } from "@effect/vitest"
import { Hub } from "@seatrial/hub"
import { Effect, Layer } from "effect"
import { makeNodeServer, makeRequestListener } from "../src/index.ts"
import { callPort, jsonOf, layerStage, makeTenant } from "./stage.ts"

layer(layerStage(), { excludeTestServices: true })("the server as a listener", (it) => {
  it.effect("shares a port with another program", () =>
    Effect.gen(function* () {
      const listener = yield* makeRequestListener.pipe(Effect.provide(Layer.mock(Hub)({})))
      const server = makeNodeServer().on("request", (request, response) => {
        if (request.url === "/v1/chat/completions") response.end("another program")
        else listener(request, response)
      })
      const port = yield* Effect.acquireRelease(
        Effect.callback<number>((resume) => {
          server.listen(0, "127.0.0.1", () => {
            const address = server.address()
            resume(address === null || typeof address === "string" ? Effect.die(new Error("no port")) : Effect.succeed(address.port))
          })
        }),
        () => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
      )
      const call = callPort(port)
      const { key } = yield* makeTenant()
      assert.deepInclude(jsonOf(yield* call("GET", "/v1/requests", { key })), { object: "list" })
      assert.strictEqual((yield* call("GET", "/v1/deployments")).status, 401)
      const other = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: "POST", headers: { connection: "close" } }))
      assert.strictEqual(yield* Effect.promise(() => other.text()), "another program")
    }).pipe(Effect.scoped)
  )
})
