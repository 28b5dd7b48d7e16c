import { connect, createServer, type Socket } from "node:net"
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Logger, Option, Redacted, Stream } from "effect"
import { listen } from "../src/listen.ts"
import { layerDatabase } from "./stage.ts"

/** A way to the database that can be closed: every connection is cut, and new ones are refused. */
const makeDoor = Effect.fnUntraced(function* (database: URL) {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(database.port), database.hostname)
    for (const end of [near, far]) {
      sockets.add(end)
      end.on("error", () => end.destroy()).once("close", () => sockets.delete(end))
    }
    near.pipe(far).pipe(near)
  })
  const openAt = (port: number) =>
    Effect.callback<number>((resume) => {
      server.listen(port, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    })
  const close = Effect.sync(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const port = yield* openAt(0)
  yield* Effect.addFinalizer(() => close)
  return { port, close, open: openAt(port) }
})

layer(layerDatabase, { excludeTestServices: true })("the notifications of a channel", (it) => {
  it.effect("return after an outage of the database, whose beginning and end are logged once", () => {
    const log: Array<string> = []
    const layerLog = Logger.layer([Logger.make(({ message }) => void log.push(String(message)))])
    return Effect.gen(function* () {
      const { config } = yield* PgClient.PgClient
      const url = new URL(Redacted.value(config.url ?? Redacted.make("")))
      const door = yield* makeDoor(url)
      const through = Redacted.make(Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(door.port) }).href)
      let losses = 0
      const event = yield* listen({ config: { ...config, url: through } }, "outage").pipe(
        Stream.tap(({ _tag }) => {
          if (_tag === "Lost") return ++losses === 3 ? door.open : Effect.void
          return _tag === "Listening" && losses === 0 ? door.close : Effect.void
        }),
        Stream.filter(({ _tag }) => _tag === "Listening" && losses > 0),
        Stream.runHead
      )
      assert.isTrue(Option.isSome(event))
      assert.strictEqual(losses, 3)
      assert.deepStrictEqual(
        log.map((line) => /^(Lost|Reconnected).*\(outage\)/.exec(line)?.[1]),
        ["Lost", "Reconnected"]
      )
    }).pipe(Effect.scoped, Effect.provide(layerLog))
  })
})
