import { type ChildProcessByStdio, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import { Ids, type Prices } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, HubConnections, ModelAdmin, Organizations, Runs } from "@seatrial/store"
import { makeCaller, makeServing } from "@seatrial/store/testing"
import { ConfigProvider, Effect, Fiber, Layer, Redacted } from "effect"
import type { Draw } from "../../faults/Draw.ts"
import { ask, type Seen } from "./ask.ts"
import { openDatabaseRoad } from "./DatabaseRoad.ts"
import { openLossyEngine, type Plan } from "./LossyEngine.ts"

const prices: Prices = {
  input_micros_per_mtok: "1234567",
  output_micros_per_mtok: "7654321",
  cache_read_micros_per_mtok: "100003",
  cache_write_micros_per_mtok: "1543209"
}

const layerStore = Layer.mergeAll(ApiKeys.layerSql, Deployments.layerSql, Organizations.layerSql, ModelAdmin.layerSql, Runs.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(Ids.layer),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64") })))
)

/** A public model that costs something, served at `url`, and a caller of another organisation. */
const makeServed = Effect.fnUntraced(function* (url: string) {
  const runs = yield* Runs
  const admin = yield* ModelAdmin
  const owner = yield* makeCaller("owner")
  const { modelId, operation } = yield* makeServing(owner.caller, "k")
  yield* runs.publishEndpoints(operation.id, owner.caller.orgId, [{ url, pod: "pod-0" }])
  yield* admin.publish(owner.caller.orgId, modelId, prices)
  const buyer = yield* makeCaller("buyer")
  return { orgId: buyer.caller.orgId, key: Redacted.value(buyer.secret), model: "tiny" }
})

const program = fileURLToPath(import.meta.resolve("@seatrial/gateway/main"))

/** One gateway, which is started again whenever it has ended. */
export interface LabGateway {
  /** Null while it does not listen. */
  readonly address: () => string | null
  readonly kill: () => void
  /** Bytes of memory that it has. */
  readonly resident: () => number
  /** How often it began to keep records on its disk. */
  readonly timesSpooled: () => number
  /** How many lines it has logged. */
  readonly lines: () => number
}

const openGateway = (databaseUrl: string, spool: string, env: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync((): LabGateway & { readonly close: () => void } => {
      let child: ChildProcessByStdio<null, Readable, null> | undefined
      let address: string | null = null
      let isOver = false
      let spooled = 0
      let logged = 0
      const start = () => {
        if (isOver) return
        const current = spawn(process.execPath, [program], {
          env: {
            ...process.env,
            DATABASE_URL: databaseUrl,
            DATABASE_ROLE: "seatrial_gateway",
            GATEWAY_HOST: "127.0.0.1",
            GATEWAY_PORT: "0",
            GATEWAY_SPOOL: spool,
            GATEWAY_ORG_CONCURRENCY: "4000",
            GATEWAY_KEY_CONCURRENCY: "4000",
            GATEWAY_REQUESTS_PER_KEY: "1000000",
            GATEWAY_REQUESTS_PER_KEY_BURST: "1000000",
            GATEWAY_REQUESTS_PER_ORG: "1000000",
            GATEWAY_REQUESTS_PER_ORG_BURST: "1000000",
            GATEWAY_ENGINE_CONCURRENCY: "4000",
            // As the chart sets it.
            NODE_OPTIONS: "--max-semi-space-size=16 --max-old-space-size=1024",
            ...env
          },
          stdio: ["ignore", "pipe", "inherit"]
        })
        child = current
        let text = ""
        current.stdout.on("data", (bytes: Buffer) => {
          const lines = (text + bytes.toString("utf8")).split("\n")
          text = lines.pop() ?? ""
          for (const line of lines) {
            const found = /gateway listens on (127\.0\.0\.1:\d+)/.exec(line)?.[1]
            if (found !== undefined && !current.killed) address = `http://${found}`
            if (line.includes("they are spooled until it does")) spooled++
            logged++
          }
        })
        current.once("exit", () => {
          address = null
          setTimeout(start, 100)
        })
      }
      start()
      const kill = () => {
        address = null
        child?.kill("SIGKILL")
      }
      const close = () => {
        isOver = true
        kill()
      }
      const resident = () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child?.pid}/status`, "utf8"))?.[1]) * 1_024
      return { address: () => address, kill, resident, timesSpooled: () => spooled, lines: () => logged, close }
    }),
    ({ close }) => Effect.sync(close)
  )

/** Waits until the condition holds. */
export const until = (condition: () => boolean) => Effect.sleep("20 millis").pipe(Effect.repeat({ while: () => !condition() }))

/** Gateways with an interruptible connection to a separate database, an engine, and callers. */
export const openLab = Effect.fnUntraced(function* (databaseUrl: string, count: number, env: Readonly<Record<string, string>> = {}) {
  const road = yield* openDatabaseRoad(databaseUrl)
  const engine = yield* openLossyEngine
  const served = yield* makeServed(engine.url).pipe(Effect.provide(Layer.provideMerge(layerStore, Database.layerUrl(Redacted.make(databaseUrl)))))
  const scratch = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-loss-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const gateways = yield* Effect.forEach(Array.from({ length: count }), (_, index) => openGateway(road.url, join(scratch, String(index)), env))
  const addresses = () => gateways.flatMap(({ address }) => address() ?? [])
  const askOnce = (address: string, plan: Plan, stream: boolean, leaveAfter: number | null = null) =>
    Effect.promise(() => ask({ address, key: served.key, model: served.model, plan, stream, leaveAfter }))
  const warmUp = Effect.gen(function* () {
    yield* until(() => addresses().length === count)
    for (const address of addresses()) {
      const plan = { pace: 1, tokens: 1, input: 1, read: 0, written: 0, silent: false }
      while ((yield* askOnce(address, plan, false)).end !== "finished") yield* Effect.sleep("50 millis")
    }
  })
  yield* Effect.timeout(warmUp, "60 seconds")
  return { ...served, road, engine, gateways, addresses, askOnce }
})
export type LossLab = Effect.Success<ReturnType<typeof openLab>>

const planOf = (draw: Draw): Plan => ({
  pace: draw.integer(1, 40),
  tokens: draw.integer(1, 60),
  input: draw.integer(1, 5_000),
  read: draw.chance(0.5) ? draw.integer(1, 5_000) : 0,
  written: draw.chance(0.5) ? draw.integer(1, 5_000) : 0,
  silent: draw.chance(0.05)
})

/** Callers that ask one request after the other, some of whom leave, while `disturb` runs; then what each of them saw. */
export const underLoad = Effect.fnUntraced(function* (lab: LossLab, draw: Draw, callers: number, disturb: Effect.Effect<void>) {
  const seen: Array<Seen> = []
  let isOver = false
  const caller = Effect.gen(function* () {
    while (!isOver) {
      const addresses = lab.addresses()
      const address = addresses[draw.integer(0, addresses.length - 1)]
      if (address === undefined) {
        yield* Effect.sleep("20 millis")
        continue
      }
      const plan = planOf(draw)
      const one = yield* lab.askOnce(address, plan, draw.chance(0.7), draw.chance(0.1) ? draw.integer(1, 20) : null)
      seen.push(one)
      if (one.end === "told") yield* Effect.sleep("50 millis")
    }
  })
  const all = yield* Effect.forkChild(Effect.forEach(Array.from({ length: callers }), () => caller, { concurrency: "unbounded", discard: true }))
  yield* disturb
  isOver = true
  yield* Effect.timeout(Fiber.join(all), "90 seconds")
  return seen
})
