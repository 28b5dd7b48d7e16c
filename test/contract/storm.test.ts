import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DeploymentOperation } from "@seatrial/domain"
import { Effect, Option, Random, Ref, Schema } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { type ServerProcess, startServer } from "./ServerProcess.ts"
import { makeTenant, Stage, type Tenant } from "./Stage.ts"
import { type Answer, bodyOf, type Cut, failureOf } from "./Wire.ts"

const keys = Number(process.env.CONTRACT_STORM_KEYS ?? 200)
const callers = Number(process.env.CONTRACT_STORM_CALLERS ?? 50)
/** Number of keys whose callers run concurrently. */
const keysAtOnce = 4

/** The responses that one caller got for a key in all its attempts. */
interface Seen {
  readonly input: number
  readonly answer: Answer
  /** Whether every attempt got at least a status. */
  readonly heardAll: boolean
  /** All received statuses, including those of torn responses. */
  readonly statuses: ReadonlyArray<number>
}

const randomCut: Effect.Effect<Cut | undefined> = Effect.gen(function* () {
  const kind = yield* Random.nextIntBetween(0, 7)
  if (kind === 0) return "sent"
  if (kind === 1) return "head"
  return kind === 2 || kind === 3 ? { afterMillis: yield* Random.nextIntBetween(0, 40) } : undefined
})

/** Retries on alternating servers until a response arrives, respecting `Retry-After`. The caller can cut the first attempt, and a dying server any attempt. */
const insist = Effect.fnUntraced(function* (
  servers: Ref.Ref<ReadonlyArray<ServerProcess>>,
  first: number,
  input: number,
  secret: string,
  key: string,
  body: string
): Effect.fn.Return<Seen> {
  const statuses: Array<number> = []
  let heardAll = true
  for (let attempt = 0; ; attempt++) {
    const up = yield* Ref.get(servers)
    const server = up[(first + attempt) % up.length]
    const cut = attempt === 0 ? yield* randomCut : undefined
    if (server === undefined) return yield* Effect.die(new Error("no server is left"))
    const ask = { method: "POST", path: "/v1/deployments", key: secret, headers: { "idempotency-key": key }, body }
    const heard = yield* server.ask(cut === undefined ? ask : { ...ask, cut })
    if (heard.status === null) heardAll = false
    else statuses.push(heard.status)
    if (heard._tag !== "Answer") continue
    if (heard.status !== 503) return { input, answer: heard, heardAll, statuses }
    // On a machine that is too busy, callers are only asked to retry.
    assert.strictEqual(Option.getOrThrow(failureOf(heard)).code, "unavailable")
    yield* Effect.sleep(`${Number(heard.headers["retry-after"] ?? 1)} seconds`)
  }
})

/** Asserts that all callers of one key saw one operation, created once. */
const assertOne = (key: string, seen: ReadonlyArray<Seen>) => {
  const ids = new Set<string>()
  for (const { answer } of seen) {
    assert.include([200, 201], answer.status, `${key}: ${answer.text}`)
    assert.strictEqual(answer.headers["idempotent-replayed"], answer.status === 200 ? "true" : undefined, key)
    const body = bodyOf(DeploymentOperation, answer)
    assert.strictEqual(body.status, "screening", key)
    assert.strictEqual(answer.headers.location, `/v1/deployments/${body.id}`, key)
    ids.add(body.id)
  }
  assert.strictEqual(ids.size, 1, `${key} stands for ${[...ids]}`)
  const firsts = seen.flatMap(({ statuses }) => statuses).filter((status) => status === 201).length
  assert.isAtMost(firsts, 1, `${key} was made twice`)
  // The response of the create itself can be one that was torn before its headers.
  if (seen.every(({ heardAll }) => heardAll)) assert.strictEqual(firsts, 1, `${key} was never made`)
  return [...ids][0] ?? ""
}

const Rows = Schema.Array(
  Schema.Struct({
    key: Schema.String,
    id: Schema.String,
    phases: Schema.Int,
    audited: Schema.Int,
    work: Schema.Int,
    slug: Schema.String,
    max: Schema.NullOr(Schema.Int)
  })
)

/** Asserts the rows of each key, and that no other rows exist. */
const rowsOf = Effect.fnUntraced(function* ({ orgId }: Tenant) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`
    SELECT k.key, d.id, m.slug, (d.serving ->> 'max_context')::int AS max,
      (SELECT count(*)::int FROM deployment_phases p WHERE p.org_id = d.org_id AND p.deployment_id = d.id) AS phases,
      (SELECT count(*)::int FROM audit_events a WHERE a.org_id = d.org_id AND a.after ->> 'deployment_id' = d.id) AS audited,
      (SELECT count(*)::int FROM outbox w WHERE w.org_id = d.org_id AND w.deployment_id = d.id) AS work
    FROM deployments d
    JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
    LEFT JOIN idempotency_keys k ON k.org_id = d.org_id AND k.deployment_id = d.id
    WHERE d.org_id = ${orgId}`.pipe(Effect.flatMap(Schema.decodeUnknownEffect(Rows)), Effect.orDie)
  const [{ count }] = yield* sql`SELECT count(*)::int AS count FROM models WHERE org_id = ${orgId}`.pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Schema.Tuple([Schema.Struct({ count: Schema.Int })]))),
    Effect.orDie
  )
  for (const { audited, key, phases, work } of rows) assert.deepStrictEqual({ phases, audited, work }, { phases: 1, audited: 1, work: 1 }, key)
  assert.strictEqual(new Set(rows.map(({ key }) => key)).size, rows.length, "a key stands for two deployments")
  return { rows, models: count }
})

/** Asserts that no disconnected caller leaves a transaction open. */
const nothingLeftOpen = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const open = sql`
    SELECT pid, query FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'seatrial' AND (state LIKE 'idle in transaction%' OR state = 'active')`
  yield* eventually("no statement and no transaction is left", Effect.orDie(open), (rows) => rows.length === 0)
})

const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }

layer(Stage.layer({ DATABASE_POOL_SIZE: "20" }), { excludeTestServices: true, timeout: 300_000 })(
  "many callers with the same idempotency keys and torn connections",
  (it) => {
    const seeded = <A, E, R>(storm: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const seed = process.env.CONTRACT_SEED ?? String(yield* Random.nextIntBetween(0, 2 ** 31))
        process.stdout.write(`CONTRACT_SEED=${seed} CONTRACT_STORM_KEYS=${keys} CONTRACT_STORM_CALLERS=${callers}\n`)
        return yield* Random.withSeed(storm, seed)
      })

    it.effect(`${keys} keys x ${callers} callers create one deployment per key, even while a server is killed`, () =>
      Effect.gen(function* () {
        const stage = yield* Stage
        const [first] = stage.servers
        // This server will be killed.
        const doomed = yield* startServer(stage.url, { DATABASE_POOL_SIZE: "20" })
        const servers = yield* Ref.make<ReadonlyArray<ServerProcess>>([first, doomed])
        const tenant = yield* makeTenant()
        const { secret } = yield* tenant.withKey()
        const models = yield* Effect.forEach([0, 1, 2, 3], (index) =>
          Effect.map(
            first.answer({
              method: "POST",
              path: "/v1/deployments",
              key: secret,
              headers: { "idempotency-key": `base-${index}` },
              body: JSON.stringify({ source, model_name: `base-${index}` })
            }),
            (answer) => bodyOf(DeploymentOperation, answer).model_id
          )
        )
        // Every second key redeploys one of a few models, whose rows are locked.
        const bodies = Array.from({ length: keys }, (_, index) =>
          JSON.stringify(
            index % 2 === 0 ? { source, model_name: `model-${index}` } : { model_id: models[index % models.length], serving: { max_context: 128 + index } }
          )
        )
        let done = 0
        const torn = { unheard: 0, atHead: 0 }
        const ids = yield* Effect.forEach(
          bodies,
          Effect.fnUntraced(function* (body, index) {
            const key = `key-${index}`
            if (done++ === Math.floor(keys / 2)) {
              yield* Effect.forkChild(
                Effect.gen(function* () {
                  yield* doomed.program.signal("SIGKILL")
                  yield* doomed.program.exited
                  yield* Ref.set(servers, [first])
                  yield* Ref.set(servers, [first, stage.servers[1]])
                })
              )
            }
            const callerResults = yield* Effect.forEach(
              Array.from({ length: callers }, (_, caller) => caller),
              (caller) => insist(servers, caller, 0, secret, key, body),
              { concurrency: "unbounded" }
            )
            for (const { heardAll, statuses } of callerResults) {
              if (!heardAll) torn.unheard++
              if (statuses.length > 1) torn.atHead++
            }
            return assertOne(key, callerResults)
          }),
          { concurrency: keysAtOnce }
        )
        assert.isTrue(doomed.program.hasExited())
        process.stdout.write(`${torn.unheard} callers lost an answer before its head, ${torn.atHead} behind it\n`)
        assert.isAbove(Math.min(torn.unheard, torn.atHead), (keys * callers) / 20)
        yield* nothingLeftOpen
        // Repeat everything. Nothing new is created.
        yield* Effect.forEach(
          bodies,
          Effect.fnUntraced(function* (body, index) {
            const answer = yield* stage.servers[index % 2 === 0 ? 1 : 0].answer({
              method: "POST",
              path: "/v1/deployments",
              key: secret,
              headers: { "idempotency-key": `key-${index}` },
              body
            })
            assert.deepStrictEqual([answer.status, bodyOf(DeploymentOperation, answer).id], [200, ids[index]])
          }),
          { concurrency: 16 }
        )
        const { models: made, rows } = yield* rowsOf(tenant)
        assert.strictEqual(rows.length, keys + models.length)
        assert.strictEqual(made, Math.ceil(keys / 2) + models.length)
        const byKey = new Map(rows.map(({ id, key }) => [key, id]))
        for (const [index, id] of ids.entries()) assert.strictEqual(byKey.get(`key-${index}`), id)
      }).pipe(seeded, Effect.scoped)
    )

    it.effect("of conflicting inputs with one key exactly one wins, and the others get a conflict", () =>
      Effect.gen(function* () {
        const stage = yield* Stage
        const servers = yield* Ref.make<ReadonlyArray<ServerProcess>>(stage.servers)
        const tenant = yield* makeTenant()
        const { secret } = yield* tenant.withKey()
        const inputs = 5
        const count = Math.ceil(keys / 5)
        const bodyFor = (index: number, input: number) =>
          JSON.stringify({ source, model_name: `model-${index}-${input % 2}`, serving: { max_context: 128 + input } })
        const winners = yield* Effect.forEach(
          Array.from({ length: count }, (_, index) => index),
          Effect.fnUntraced(function* (index) {
            const key = `conflict-${index}`
            const callerResults = yield* Effect.forEach(
              Array.from({ length: callers }, (_, caller) => caller),
              (caller) => insist(servers, caller, caller % inputs, secret, key, bodyFor(index, caller % inputs)),
              { concurrency: "unbounded" }
            )
            const taken = callerResults.filter(({ answer }) => answer.status < 300)
            const winner = new Set(taken.map(({ input }) => input))
            assert.strictEqual(winner.size, 1, `${key}: ${[...winner]} won`)
            for (const { answer, input } of callerResults) {
              if (winner.has(input)) assert.isBelow(answer.status, 300, answer.text)
              else assert.deepStrictEqual([answer.status, Option.getOrThrow(failureOf(answer)).code], [409, "idempotency_key_reused"])
            }
            return { key, id: assertOne(key, taken), input: [...winner][0] ?? -1, index }
          }),
          { concurrency: keysAtOnce }
        )
        yield* nothingLeftOpen
        const { models, rows } = yield* rowsOf(tenant)
        assert.strictEqual(rows.length, count)
        assert.strictEqual(models, count)
        for (const { id, index, input, key } of winners) {
          const row = rows.find((candidate) => candidate.key === key)
          assert.deepInclude(row, { id, slug: `model-${index}-${input % 2}`, max: 128 + input })
        }
      }).pipe(seeded)
    )
  }
)
