import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { EnginePools } from "../src/engine/EnginePools.ts"

/** The timer of the open connection to this port, as Linux shows it in `/proc/net/tcp`. */
const timerOf = async (port: number) => {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const lines = (await readFile("/proc/net/tcp", "utf8")).split("\n").map((line) => line.trim().split(/\s+/u))
  const line = lines.find(([, , to, state]) => to === remote && state === "01")
  const [kind = "", hundredths = ""] = (line?.[5] ?? "").split(":")
  return { kind, seconds: Number.parseInt(hundredths, 16) / 100 }
}

it.live("a request whose engine sends nothing asks after seconds whether the engine's node still exists", () =>
  Effect.gen(function* () {
    const pools = yield* Effect.acquireRelease(
      Effect.sync(() => new EnginePools(1_000)),
      (all) => Effect.promise(() => all.close())
    )
    const server = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const silent = createServer(() => {})
        silent.listen(0, "127.0.0.1")
        await once(silent, "listening")
        return silent
      }),
      (silent) =>
        Effect.sync(() => {
          silent.close()
          silent.closeAllConnections()
        })
    )
    const address = server.address()
    assert(typeof address === "object" && address !== null)
    const asked = once(server, "request")
    pools
      .of(`http://127.0.0.1:${address.port}`)
      .request({ path: "/", method: "GET" })
      .catch(() => {})
    yield* Effect.promise(() => asked)
    const timer = yield* Effect.promise(() => timerOf(address.port))
    // 02: the timer of keep-alive probes.
    assert.strictEqual(timer.kind, "02")
    assert.isAtMost(timer.seconds, 5)
  }).pipe(Effect.scoped)
)
