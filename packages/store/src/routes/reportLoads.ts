import { type PgClient, PgTypes } from "@effect/sql-pg"
import type { ModelId, OrgId } from "@seatrial/domain"
import { Clock, Effect, Result, Schedule } from "effect"
import { makeOutageLog } from "../outageLog.ts"
import { textArray } from "../textArray.ts"

/** The requests of one gateway that run on an engine, or that wait for any engine of the model (an empty `pod`). */
export interface EndpointLoad {
  readonly orgId: OrgId
  readonly modelId: ModelId
  readonly pod: string
  readonly running: number
  readonly waiting: number
  /**
   * While the model moves from one revision to another: the requests that the engine answered since the move began, and
   * the attempts that failed. Otherwise 0.
   */
  readonly answered: number
  readonly failed: number
}

/** A load that does not change is written again after this time, unless it is zero. */
const heartbeatMillis = 10_000
/** Loads that one statement writes. Others are written by the next one. */
const maxRows = 1_000
/** How long after its last write a load is deleted. Readers ignore it earlier. */
const keepSeconds = 60
/** Loads that one statement deletes, and the milliseconds between two of these. */
const maxDeleted = 5_000
const deleteIntervalMillis = 30_000

const intArray = (values: ReadonlyArray<number>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.int4))
const sumArray = (values: ReadonlyArray<number>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.float8))

const counted = ["running", "waiting", "answered", "failed"] as const

/** The loads that were written last, and those that must be written now. */
export class WrittenLoads {
  readonly #written = new Map<string, EndpointLoad & { readonly at: number }>()

  /**
   * Changed loads, and those whose last write is old, oldest first. A load that is not in `loads` is zero. If there are
   * none, the oldest one with requests: the autoscaler counts only gateways that go on writing.
   */
  due(loads: ReadonlyArray<EndpointLoad>, now: number): ReadonlyArray<EndpointLoad> {
    const current = new Map(loads.map((load) => [`${load.modelId} ${load.pod}`, load]))
    const gone = [...this.#written].flatMap(([key, { at: _, ...load }]) =>
      current.has(key) ? [] : { ...load, running: 0, waiting: 0, answered: 0, failed: 0 }
    )
    const all = [...loads, ...gone].map((load) => ({ load, last: this.#written.get(`${load.modelId} ${load.pod}`) }))
    const hasRequests = ({ running, waiting }: EndpointLoad) => running + waiting > 0
    const changed = all.filter(({ last, load }) => {
      const isSame = counted.every((name) => load[name] === (last?.[name] ?? 0))
      return !isSame || (hasRequests(load) && now - (last?.at ?? 0) >= heartbeatMillis)
    })
    const candidates = changed.length > 0 ? changed : all.filter(({ load }) => hasRequests(load))
    const oldestFirst = candidates.toSorted((one, other) => (one.last?.at ?? 0) - (other.last?.at ?? 0))
    return oldestFirst.slice(0, changed.length > 0 ? maxRows : 1).map(({ load }) => load)
  }

  record(loads: ReadonlyArray<EndpointLoad>, now: number) {
    for (const load of loads) {
      const key = `${load.modelId} ${load.pod}`
      if (counted.every((name) => load[name] === 0)) this.#written.delete(key)
      else this.#written.set(key, { ...load, at: now })
    }
  }
}

const write = (sql: PgClient.PgClient, gatewayId: string, loads: ReadonlyArray<EndpointLoad>) => sql`
  INSERT INTO endpoint_loads AS l (org_id, model_id, gateway_id, pod, running, waiting, answered, failed, at)
  SELECT org_id, model_id, ${gatewayId}, pod, running, waiting, answered, failed, now() FROM unnest(
    ${textArray(loads.map(({ orgId }) => orgId))}, ${textArray(loads.map(({ modelId }) => modelId))}, ${textArray(loads.map(({ pod }) => pod))},
    ${intArray(loads.map(({ running }) => running))}, ${intArray(loads.map(({ waiting }) => waiting))},
    ${sumArray(loads.map(({ answered }) => answered))}, ${sumArray(loads.map(({ failed }) => failed))}) AS input (org_id, model_id, pod, running, waiting, answered, failed)
  ON CONFLICT (model_id, gateway_id, pod) DO UPDATE
    SET running = excluded.running, waiting = excluded.waiting, answered = excluded.answered, failed = excluded.failed, at = excluded.at`

/** Deletes loads that no gateway writes any more: zeros, and loads of gateways that died. */
const deleteOld = (sql: PgClient.PgClient) => sql`
  DELETE FROM endpoint_loads WHERE (model_id, gateway_id, pod) IN (
    SELECT model_id, gateway_id, pod FROM endpoint_loads WHERE at < now() - make_interval(secs => ${keepSeconds}) LIMIT ${maxDeleted} FOR UPDATE SKIP LOCKED)`

/**
 * Writes the loads of this gateway at intervals until the scope closes: in one statement, and only those that changed
 * or would expire, or else one of them. Never fails: after an error, the next statement writes them.
 */
export const reportLoads = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  gatewayId: string,
  options: { readonly current: () => ReadonlyArray<EndpointLoad>; readonly intervalMillis: number }
) {
  const written = new WrittenLoads()
  let deletedAt = 0
  const report = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const due = written.due(options.current(), now)
    if (due.length > 0) yield* Effect.uninterruptible(write(sql, gatewayId, due))
    written.record(due, now)
    if (now - deletedAt < deleteIntervalMillis) return
    deletedAt = now
    yield* deleteOld(sql)
  })
  // Finalizers run in reverse order: this one after the last report has ended, which would write a row again.
  yield* Effect.addFinalizer(() => Effect.ignore(sql`DELETE FROM endpoint_loads WHERE gateway_id = ${gatewayId}`))
  yield* report.pipe(
    Effect.catchCause(makeOutageLog("Could not report the load of the engines")),
    Effect.repeat(Schedule.spaced(options.intervalMillis)),
    Effect.forkScoped
  )
})
