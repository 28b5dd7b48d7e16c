import { isDeepStrictEqual } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { OrgId, RevisionId } from "@seatrial/domain"
import { Effect, Fiber, Option, Queue, Stream } from "effect"
import { Deployments, type Endpoint, Organizations, Routes, Runs, type UnprovenEndpoint } from "../src/index.ts"
import { layerStore, soon } from "./stage.ts"
import { makeCaller, makeServing, newModel, walk } from "./support/index.ts"

/** Marks a published endpoint as reached by a gateway. */
const reach = Effect.fnUntraced(function* (orgId: OrgId, revisionId: RevisionId, { pod, url }: Endpoint) {
  const routes = yield* Routes
  yield* routes.markReachable({ orgId, revisionId, runtime: "reference", url, pod })
})

const endpoint = (name: string) => ({ url: `http://127.0.0.1:80${name.length}${name.charCodeAt(0)}`, pod: `pod-${name}` })

layer(layerStore, { excludeTestServices: true })("Routes", (it) => {
  it.effect("only active, reachable revisions are routed; a new revision of a model with one engine takes over at once", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const routes = yield* Routes
      const { caller } = yield* makeCaller("route")
      const { orgId } = caller
      const { id, modelId } = yield* deployments.create(newModel(caller, "k1"))
      yield* walk(caller, id, "activating")
      const revisionOf = Effect.fnUntraced(function* (run: typeof id) {
        return Option.getOrThrow(Option.fromNullishOr(Option.getOrThrow(yield* runs.observe(run)).revision)).id
      })
      const first = yield* revisionOf(id)
      yield* runs.publishEndpoints(id, orgId, [endpoint("a"), endpoint("b")])
      yield* reach(orgId, first, endpoint("a"))
      assert.deepStrictEqual(
        Option.getOrThrow(yield* runs.observe(id)).endpoints.map(({ reachable }) => reachable),
        [true, false]
      )
      assert.isUndefined(routes.known(orgId, "route/tiny"))
      yield* runs.activate({ id, orgId, from: "activating" })
      // Without waiting for the gateway's notification.
      const lookup = routes.find(orgId, "route/tiny")
      const route = Option.getOrThrow(yield* lookup)
      assert.deepStrictEqual(
        [route.revisionId, route.modelId, route.maxModelLen, route.engineVersion, route.prices.input_micros_per_mtok, route.endpoints],
        [first, modelId, 2_048, "reference-1", "0", [endpoint("a")]]
      )
      yield* reach(orgId, first, endpoint("b"))
      yield* soon(Effect.map(lookup, (now) => Option.getOrThrow(now).endpoints.length === 2))

      const second = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
      yield* walk(caller, second.id, "activating")
      yield* runs.publishEndpoints(second.id, orgId, [endpoint("c")])
      const replacing = yield* revisionOf(second.id)
      yield* reach(orgId, replacing, endpoint("c"))
      yield* runs.activate({ id: second.id, orgId, from: "activating" })
      yield* soon(Effect.map(lookup, (now) => Option.getOrThrow(now).revisionId !== first))
      assert.deepStrictEqual(Option.getOrThrow(yield* lookup).endpoints, [endpoint("c")])
      assert.deepStrictEqual(Option.getOrThrow(yield* runs.observe(id)).endpoints, [])
      assert.include(
        (yield* runs.live).map((each) => each.id),
        id
      )
      // A woken model has an engine as soon as its notification has arrived.
      yield* runs.publishEndpoints(second.id, orgId, [])
      yield* soon(Effect.map(lookup, (now) => Option.getOrThrow(now).endpoints.length === 0))
      yield* runs.publishEndpoints(second.id, orgId, [endpoint("d")])
      yield* reach(orgId, replacing, endpoint("d"))
      yield* soon(Effect.map(lookup, (now) => isDeepStrictEqual(Option.getOrThrow(now).endpoints, [endpoint("d")])))
    })
  )

  it.effect("a change arrives without polling: memory is current when it is emitted", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const routes = yield* Routes
      const { caller } = yield* makeCaller("notified")
      const { operation, revisionId } = yield* makeServing(caller, "k")
      const emitted = yield* Queue.unbounded<number>()
      const known = () => routes.known(caller.orgId, "notified/tiny")?.endpoints.length ?? 0
      yield* Effect.forkScoped(Stream.runForEach(routes.changes, () => Queue.offer(emitted, known())))
      yield* runs.publishEndpoints(operation.id, caller.orgId, [endpoint("a")])
      yield* reach(caller.orgId, revisionId, endpoint("a"))
      while ((yield* Queue.take(emitted)) !== 1);
      assert.deepStrictEqual(routes.ofModel(operation.modelId)?.endpoints, [endpoint("a")])
      yield* runs.publishEndpoints(operation.id, caller.orgId, [])
      while ((yield* Queue.take(emitted)) !== 0);
    }).pipe(Effect.scoped)
  )

  it.effect("a route contains the measured concurrency and start time", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const routes = yield* Routes
      const { caller } = yield* makeCaller("measured")
      const { revisionId } = yield* makeServing(caller, "k")
      const step = (concurrency: number, errors: number) => ({ concurrency, errors })
      const start = (seconds: number) => ({ image_pull: null, weights_to_node: 1, process_to_loaded: seconds, loaded_to_ready: 2, first_token: 9 })
      const tables: ReadonlyArray<
        readonly [
          measured: object | null,
          steps: ReadonlyArray<object>,
          settings: object,
          starts: ReadonlyArray<number>,
          concurrency: number | null,
          seconds: number | null
        ]
      > = [
        [null, [], { engine_flags: { max_num_seqs: 3 } }, [], null, null],
        [{ max_concurrency: 7.9, load_seconds: 12, boot_seconds: 30 }, [], {}, [], 7, 42],
        [{ max_concurrency: 0.4, load_seconds: 12 }, [], { hold_seconds: 9 }, [], 1, 12],
        [{ max_concurrency: 4, load_seconds: 12 }, [step(1, 0), step(16, 0), step(64, 3)], { hold_seconds: 9 }, [10, 30, 20], 16, 23],
        [{ max_concurrency: null, load_seconds: null }, [step(64, 0)], { engine_flags: { max_num_seqs: 8 } }, [], 8, null]
      ]
      for (const [measured, steps, settings, starts, concurrency, seconds] of tables) {
        yield* sql`DELETE FROM engine_starts WHERE org_id = ${caller.orgId}`
        for (const [index, seconds] of starts.entries()) {
          yield* sql`
            INSERT INTO engine_starts (org_id, revision_id, pod_uid, kind, parts, created_at)
            VALUES (${caller.orgId}, ${revisionId}, ${`pod-${index}`}, 'cold', ${sql.json(start(seconds))}, now())`
        }
        yield* sql`
          UPDATE revisions SET measured = ${measured === null ? null : sql.json(measured)}, benchmark = ${sql.json({ steps })}, settings = ${sql.json(settings)}
          WHERE org_id = ${caller.orgId} AND id = ${revisionId}`
        yield* sql`SELECT pg_notify('routes', '')`
        const figures = () => {
          const route = routes.known(caller.orgId, "measured/tiny")
          return [route?.concurrency, route?.startSeconds]
        }
        yield* soon(Effect.sync(() => isDeepStrictEqual(figures(), [concurrency, seconds])))
      }
    })
  )

  it.effect("a route contains the repository's sampling defaults unless the settings disable them", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const routes = yield* Routes
      const { caller } = yield* makeCaller("sampled")
      const { revisionId } = yield* makeServing(caller, "k")
      const defaults = { temperature: 0.6 }
      yield* sql`
        UPDATE revisions SET facts = jsonb_set(facts, '{sampling}', ${sql.json(defaults)}) WHERE org_id = ${caller.orgId} AND id = ${revisionId}`
      for (const [flags, sampling] of [
        [{ seed: 1 }, defaults],
        [{ sampling_defaults: "model" }, defaults],
        [{ sampling_defaults: "openai" }, {}]
      ] as const) {
        yield* sql`UPDATE revisions SET settings = ${sql.json({ engine_flags: flags })} WHERE org_id = ${caller.orgId} AND id = ${revisionId}`
        yield* sql`SELECT pg_notify('routes', '')`
        yield* soon(Effect.sync(() => isDeepStrictEqual(routes.known(caller.orgId, "sampled/tiny")?.sampling, sampling)))
      }
    })
  )

  it.effect("a new pod at a known address must be reached again, and publishing the same endpoints notifies no listener", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const runs = yield* Runs
      const { caller } = yield* makeCaller("again")
      const { operation, revisionId } = yield* makeServing(caller, "k")
      const publish = (pod: string) => runs.publishEndpoints(operation.id, caller.orgId, [{ url: endpoint("a").url, pod }])
      yield* publish("one")
      yield* reach(caller.orgId, revisionId, { url: endpoint("a").url, pod: "one" })
      const reachable = Effect.map(runs.observe(operation.id), (run) => Option.getOrThrow(run).endpoints.map((known) => known.reachable))
      const version = sql`SELECT xmin::text, published_at FROM endpoints WHERE org_id = ${caller.orgId}`
      const before = yield* version
      yield* publish("one")
      assert.deepStrictEqual(yield* version, before)
      assert.deepStrictEqual(yield* reachable, [true])
      yield* publish("two")
      assert.deepStrictEqual(yield* reachable, [false])
      // Answers of the earlier pod do not prove that this one is reachable.
      yield* reach(caller.orgId, revisionId, { url: endpoint("a").url, pod: "one" })
      assert.deepStrictEqual(yield* reachable, [false])
    })
  )

  it.effect("unproven endpoints are emitted until one gateway has reached them", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const routes = yield* Routes
      const { caller } = yield* makeCaller("unproven")
      const { operation, revisionId } = yield* makeServing(caller, "k")
      const emitted = yield* Queue.sliding<UnprovenEndpoint>(100)
      const fiber = yield* Effect.forkChild(Stream.runForEach(routes.unproven, (endpoints) => Queue.offerAll(emitted, endpoints)))
      yield* runs.publishEndpoints(operation.id, caller.orgId, [endpoint("u")])
      const hear = Effect.gen(function* () {
        while (true) {
          const next = yield* Queue.take(emitted)
          if (next.revisionId === revisionId) return next
        }
      })
      assert.deepStrictEqual(yield* hear, { ...endpoint("u"), orgId: caller.orgId, revisionId, runtime: "reference" })
      yield* reach(caller.orgId, revisionId, endpoint("u"))
      yield* soon(Effect.map(routes.find(caller.orgId, "unproven/tiny"), (route) => Option.getOrThrow(route).endpoints.length === 1))
      yield* Queue.clear(emitted)
      const later = yield* makeServing(caller, "k2", "later")
      yield* runs.publishEndpoints(later.operation.id, caller.orgId, [endpoint("v")])
      const next = yield* Queue.take(emitted)
      assert.notStrictEqual(next.revisionId, revisionId)
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect(
    "an organization does not see another's private models, every organization sees public ones by their bare name, and models of a suspended one are removed",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const routes = yield* Routes
        const organizations = yield* Organizations
        const mine = yield* makeCaller("mine")
        const theirs = yield* makeCaller("theirs")
        yield* makeServing(mine.caller, "k", "own")
        const open = yield* makeServing(mine.caller, "k2", "open")
        const seenBy = (orgId: OrgId) => ["mine/own", "mine/open"].filter((name) => routes.known(orgId, name) !== undefined)
        yield* soon(Effect.sync(() => seenBy(mine.caller.orgId).length === 2))
        assert.isTrue(Option.isNone(yield* routes.find(theirs.caller.orgId, "mine/own")))
        assert.deepStrictEqual(seenBy(theirs.caller.orgId), [])
        yield* sql`UPDATE models SET visibility = 'public' WHERE org_id = ${mine.caller.orgId} AND id = ${open.modelId}`
        yield* sql`SELECT pg_notify('routes', '')`
        yield* soon(Effect.map(routes.find(theirs.caller.orgId, "open"), Option.isSome))
        assert.isTrue(Option.isNone(yield* routes.find(theirs.caller.orgId, "own")))
        yield* organizations.setStatus(mine.caller.orgId, "suspended")
        yield* soon(Effect.map(routes.find(theirs.caller.orgId, "open"), Option.isNone))
      })
  )

  it.effect("a row that cannot be decoded is omitted, and no other route is", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const routes = yield* Routes
      const { caller } = yield* makeCaller("unread")
      const odd = yield* makeServing(caller, "k1", "odd")
      yield* makeServing(caller, "k2", "even")
      const lookup = (name: string) => Effect.map(routes.find(caller.orgId, `unread/${name}`), Option.isSome)
      yield* soon(Effect.map(Effect.all([lookup("odd"), lookup("even")]), (both) => both.every(Boolean)))
      yield* sql`UPDATE revisions SET runtime = 'unheard_of' WHERE org_id = ${caller.orgId} AND id = ${odd.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* soon(Effect.map(lookup("odd"), (there) => !there))
      assert.isTrue(yield* lookup("even"))
      yield* sql`UPDATE revisions SET runtime = 'reference' WHERE org_id = ${caller.orgId} AND id = ${odd.revisionId}`
      yield* sql`SELECT pg_notify('routes', '')`
      yield* soon(lookup("odd"))
    })
  )

  it.effect("the routes are read again after a lost connection", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const routes = yield* Routes
      const { caller } = yield* makeCaller("reconnect")
      const { modelId } = yield* makeServing(caller, "k")
      yield* soon(Effect.map(routes.find(caller.orgId, "reconnect/tiny"), Option.isSome))
      yield* sql`UPDATE models SET status = 'disabled' WHERE org_id = ${caller.orgId} AND id = ${modelId}`
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN "routes"'`
      yield* soon(Effect.map(routes.find(caller.orgId, "reconnect/tiny"), Option.isNone))
    })
  )
})
