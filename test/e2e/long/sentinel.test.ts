import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { RequestList, SuspicionList } from "@seatrial/api"
import { Event, type Pod } from "@seatrial/kube"
import { HostClassResource } from "@seatrial/operator"
import { Effect, Redacted, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import { addProbe, alarmLevel, divide, noEvidence, scoreOfDistance } from "../../../packages/operator/src/sentinel/evidence.ts"
import { bodyOf, makeCaller } from "../Caller.ts"
import { openCluster, patiently } from "../cluster.ts"
import { readyEngines } from "../engines.ts"
import { eventually } from "../eventually.ts"
import { keepCalling } from "../keepCalling.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { processesOf } from "../processesOf.ts"
import { serving, source } from "../Served.ts"

/**
 * Faults that a running engine gets: of attention, of positions, and a milder one of its cache. With each, the mean
 * difference of each text from the trial, measured with `likelihoodDistance`, nats. A deployment's engines are replaced
 * three times a day.
 */
const distances: Readonly<Record<string, ReadonlyArray<number>>> = {
  attention_unscaled: [3.58, 3.12, 3.82, 1.53, 0.91],
  rope_interleaved: [3.34, 3.49, 3.35, 1.38, 2.29],
  kv_e5m2: [0.41, 0.45, 0.46, 0.067, 0.058]
}
const faults = (process.env.SENTINEL_FAULTS ?? Object.keys(distances).join(",")).split(",")

/** Probes as often as possible. Each takes long on a busy machine without GPUs. */
const seconds = 10
const settings = { OPERATOR_SENTINEL_SECONDS: String(seconds), OPERATOR_SENTINEL_SHARE: "0.5" }

/**
 * The most probes until the alarm, by the arithmetic of the evidence: any text may be the first one. A suspicion counts
 * those since each text was good, up to one of each text more. The fault may begin during one of these.
 */
const mostProbes = (nats: ReadonlyArray<number>): number => {
  const level = alarmLevel(1e-6, seconds * 1_000)
  const delays = nats.map((_, first) => {
    let evidence = divide(noEvidence(0), nats.length)
    while (evidence.total < level) evidence = addProbe(evidence, scoreOfDistance(nats[(evidence.probes + first) % nats.length] ?? 0), 0)
    return evidence.probes
  })
  return Math.max(...delays)
}

const Progress = Schema.Struct({ message: Schema.String })
const Suspicion = Schema.Struct({ since: Schema.Date, at: Schema.Date, withdrawn: Schema.NullOr(Schema.Date), probes: Schema.Int, evidence: Schema.Finite })

/** The ids of all requests of a suspicion. */
const listRequests = Effect.fnUntraced(function* (caller: ReturnType<typeof makeCaller>, url: string) {
  const ids: Array<string> = []
  let next = ""
  do {
    const { data, next_cursor } = bodyOf(RequestList, yield* caller.call("GET", `${url}?limit=200${next}`))
    ids.push(...data.map(({ id }) => id))
    next = next_cursor === null ? "" : `&cursor=${encodeURIComponent(next_cursor)}`
  } while (next !== "")
  return ids
})

const Message = Schema.fromJsonString(
  Schema.Struct({ type: Schema.String, data: Schema.Struct({ id: Schema.String, engine: Schema.String, org_id: Schema.String }) })
)

/** A receiver of the webhook that accepts every second request, so that each message is sent again. */
const startReceiver = Effect.gen(function* () {
  const messages: Array<typeof Message.Type> = []
  let requests = 0
  const server = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    messages.push(Schema.decodeUnknownSync(Message)(Buffer.concat(chunks).toString()))
    response.writeHead(requests++ % 2 === 0 ? 503 : 204).end()
  })
  yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  const address = server.address()
  const port = address === null || typeof address === "string" ? 0 : address.port
  return { messages, url: `http://127.0.0.1:${port}/` }
})

const spoil = (folder: string, { metadata: { uid = "none" } }: Pod, fault: string) =>
  Effect.sync(() => {
    writeFileSync(join(folder, "fault"), fault)
    const engines = processesOf(uid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("seatrial-reference-engine"))
    assert.strictEqual(engines.length, 1)
    for (const pid of engines) process.kill(pid, "SIGUSR2")
  })

it.live(
  `an engine that becomes faulty while it serves is withdrawn and replaced without a failed request (${faults.join(", ")})`,
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const receiver = yield* startReceiver
      const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false", OPERATOR_WEBHOOK_URL: receiver.url, ...settings })
      const [caller, kube] = [makeCaller(state.address, state.api_key), yield* openCluster(state.kubeconfig)]
      const env = [{ name: "NODE_OPTIONS", value: `--import=${new URL("../faultOnSignal.ts", import.meta.url).href}` }]
      yield* patiently(kube.mergePatch(HostClassResource, serving.host_class, undefined, { spec: { benchmarkSeconds: 1, env } }))
      const operation = yield* caller.deploy({ source, serving })
      const ended = yield* caller.finished(operation.id)
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      yield* caller.call("PUT", `/v1/models/${operation.model_id}/scaling`, { replicas: 2 })
      const message = Effect.map(caller.call("GET", `/v1/deployments/${operation.id}/progress`), (answer) => bodyOf(Progress, answer).message)
      const bothServe = eventually("both engines serve", message, (text) => text === "Serves. 2 of 2 engines serve.")
      yield* bothServe
      const stop = yield* keepCalling(caller, ended.model, 1)
      const sql = yield* PgClient.make({ url: Redacted.make(state.database_url), maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))

      for (const [turn, fault] of faults.entries()) {
        const engine = (yield* readyEngines(kube, operation.id))[turn % 2]
        assert.isDefined(engine)
        const uid = engine.metadata.uid ?? ""
        yield* eventually(
          "the engine was probed",
          Effect.map(sql`SELECT probes FROM sentinels WHERE pod_uid = ${uid} AND probes >= 3`, (rows) => rows.length),
          (count) => count > 0
        )
        const began = Date.now()
        yield* spoil(folder, engine, fault)
        const rows = sql`SELECT since, created_at AS at, withdrawn_at AS withdrawn, probes, evidence FROM suspicions WHERE pod_uid = ${uid}`
        const [suspicion] = yield* eventually(
          "its alarm and its withdrawal are recorded",
          Effect.map(rows, (all) => all.map((row) => Schema.decodeUnknownSync(Schema.toType(Suspicion))(row))),
          (all) => all.some(({ withdrawn }) => withdrawn !== null)
        )
        assert.isDefined(suspicion)
        yield* Effect.logInfo(
          `${fault}: alarm after ${suspicion.probes} probes and ${Math.round((suspicion.at.getTime() - began) / 1_000)} s, evidence ${suspicion.evidence.toExponential(1)}`
        )
        const differences = distances[fault]
        if (differences !== undefined) assert.isAtMost(suspicion.probes, mostProbes(differences) + differences.length, fault)
        assert.isAtMost(suspicion.since.getTime(), began + 1_000)
        // The API lists what this engine answered since, and nothing that the other one answered in that time.
        const { data } = bodyOf(SuspicionList, yield* caller.call("GET", "/v1/org/suspicions?limit=1"))
        assert.strictEqual(data[0]?.engine, engine.metadata.name)
        const messages = () => receiver.messages.filter((message) => message.data.id === data[0]?.id)
        yield* eventually("the webhook has accepted the alarm", Effect.sync(messages), ({ length }) => length >= 2)
        for (const { data: of, type } of messages()) assert.deepStrictEqual([type, of.engine], ["suspicion.created", engine.metadata.name])
        const recorded = yield* sql<{ readonly id: string; readonly own: boolean }>`
          SELECT id, engine::text = ${uid} AS own FROM requests WHERE state = 'completed' AND created_at >= ${suspicion.since} AND engine IS NOT NULL`
        const answered = yield* listRequests(caller, data[0]?.requests_url ?? "")
        assert.isAbove(answered.length, 0)
        const idsOf = (own: boolean) => new Set(recorded.filter((row) => row.own === own).map(({ id }) => id))
        assert.deepStrictEqual(
          answered.filter((id) => idsOf(false).has(id)),
          []
        )
        assert.deepStrictEqual(
          [...idsOf(true)].filter((id) => !answered.includes(id)),
          []
        )
        yield* eventually(
          "another engine serves in its place",
          readyEngines(kube, operation.id),
          (pods) => pods.length === 2 && pods.every(({ metadata }) => metadata.uid !== uid)
        )
        yield* bothServe
      }
      const reasons = (yield* patiently(kube.list(Event, { namespace: "seatrial" }))).map(({ reason }) => reason)
      assert.include(reasons, "AnswersChanged")
      // No request failed: a client dies on the first error.
      assert.isAbove((yield* stop).length, 50)
    }).pipe(Effect.scoped),
  1_800_000
)
