import { PgClient } from "@effect/sql-pg"
import { Deployment, DeploymentDetail, DeploymentEvents, V1Deployment, V1DeploymentDetail } from "@seatrial/domain"
import { Organizations } from "@seatrial/store"
import { checks, facts } from "@seatrial/store/testing"
import { Effect, Schema } from "effect"
import { eventually } from "../../e2e/eventually.ts"
import { bodyOf } from "../Wire.ts"
import { isOver, type ModelledRun, type OrgName, phaseOf, type State, v1History, v1Name } from "./ContractModel.ts"
import { exchange, type Play } from "./Play.ts"

interface ReadRun {
  readonly name: string
  readonly detail: DeploymentDetail
  readonly v1: V1DeploymentDetail
  readonly events: DeploymentEvents
}

const buckets = ["", "running", "succeeded", "failed", "stopped"] as const
const bucketOf = (run: ModelledRun): string => {
  const phase = phaseOf(run)
  return !isOver(run) ? "running" : phase === "activated" ? "succeeded" : phase === "cancelled" ? "stopped" : phase
}

const page = <A, I>(row: Schema.Codec<A, I>) => Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(row), next_cursor: Schema.Null })
const OrgPage = page(Deployment)
const V1Page = page(V1Deployment)

const Counts = Schema.Tuple([
  Schema.Struct({ deployments: Schema.Int, keys: Schema.Int, models: Schema.Int, phases: Schema.Int, audited: Schema.Int, activated: Schema.Int })
])

/** Everything that one organization can read about its deployments, alternating between the servers, and the row counts in the database. */
const readAll = Effect.fnUntraced(function* (play: Play, org: OrgName, key: string) {
  let turn = 0
  const get = (path: string) => exchange(turn++ % 2, { method: "GET", path, key })
  const read = <A>(path: string, schema: Schema.Codec<A, unknown>) =>
    Effect.map(get(path), (answer) => {
      if (answer.status !== 200) throw new Error(`GET ${path} answered ${answer.status}: ${answer.text}`)
      return bodyOf(schema, answer)
    })
  const runs: Array<ReadRun> = []
  const hidden: Array<string> = []
  for (const [name, id] of play.names.runs) {
    if (!name.startsWith(`${org}/`)) {
      for (const path of [`/v1/org/deployments/${id}`, `/v1/deployments/${id}`, `/v1/deployments/${id}/events`]) {
        const { status, text } = yield* get(path)
        if (status !== 404) hidden.push(`${path} answered ${org} ${status}: ${text}`)
      }
      continue
    }
    const detail = yield* read(`/v1/org/deployments/${id}`, DeploymentDetail)
    const v1 = yield* read(`/v1/deployments/${id}`, V1DeploymentDetail)
    runs.push({ name, detail, v1, events: yield* read(`/v1/deployments/${id}/events`, DeploymentEvents) })
  }
  const lists = []
  const filters = [
    ...buckets.map((bucket) => ({ bucket, model: "", query: bucket === "" ? "limit=200" : `limit=200&status=${bucket}` })),
    ...[...play.names.models].map(([model, id]) => ({ bucket: "", model, query: `model_id=${id}&limit=200` }))
  ]
  for (const { bucket, model, query } of filters) {
    const rows = (yield* read(`/v1/org/deployments?${query}`, OrgPage)).data
    lists.push({ bucket, model, query, rows, v1: (yield* read(`/v1/deployments?${query}`, V1Page)).data })
  }
  const sql = yield* PgClient.PgClient
  const { orgId } = play.tenants[org]
  const [counts] = yield* sql`
    SELECT (SELECT count(*)::int FROM deployments WHERE org_id = ${orgId}) AS deployments,
      (SELECT count(*)::int FROM idempotency_keys WHERE org_id = ${orgId}) AS keys,
      (SELECT count(*)::int FROM models WHERE org_id = ${orgId}) AS models,
      (SELECT count(*)::int FROM deployment_phases WHERE org_id = ${orgId}) AS phases,
      (SELECT count(*)::int FROM audit_events WHERE org_id = ${orgId} AND resource_type = 'model_config' AND actor_kind = 'user') AS audited,
      (SELECT count(*)::int FROM audit_events WHERE org_id = ${orgId} AND resource_type = 'model_config' AND action = 'activated') AS activated`.pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Counts)),
    Effect.orDie
  )
  return { org, runs, lists, counts, hidden }
})
type Readings = Effect.Success<ReturnType<typeof readAll>>

const newestFirst = (a: { readonly created_at: string; readonly id: string }, b: { readonly created_at: string; readonly id: string }) =>
  a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** The first difference between the readings and the contract model, or null. */
const difference = (play: Play, state: State, { counts, hidden, lists, org, runs }: Readings): string | null => {
  if (hidden[0] !== undefined) return hidden[0]
  const { slug, userId } = play.tenants[org]
  const modelled = Object.entries(state.runs).filter(([, run]) => run.org === org)
  if (!same(modelled.map(([name]) => name).sort(), runs.map(({ name }) => name).sort())) return `${org} has other runs than ${modelled.map(([name]) => name)}`
  for (const { detail, events, name, v1 } of runs) {
    const run = state.runs[name]
    const model = run === undefined ? undefined : state.models[run.model]
    if (run === undefined || model === undefined) return `${name} is not in the model`
    const at = detail.phases.map((entry) => entry.at)
    const screened = run.revision !== "none"
    const expected = {
      id: play.names.runs.get(name),
      object: "deployment",
      model_id: play.names.models.get(run.model),
      model: `${slug}/${model.slug}`,
      status: phaseOf(run),
      failure_detail: run.failure,
      created_at: at[0],
      updated_at: detail.updated_at,
      ended_at: isOver(run) ? at.at(-1) : null,
      revision_id: screened ? (detail.revision_id ?? "some") : null,
      hf_revision: screened ? facts.commit : null,
      started_by_user_id: userId
    }
    const { checks: passed, phases, revision, ...summary } = detail
    if (!same(Object.entries(expected).sort(), Object.entries(summary).sort())) return `${name} is ${JSON.stringify(summary)}, not ${JSON.stringify(expected)}`
    if (
      !same(
        phases.map(({ status }) => status),
        run.phases
      )
    )
      return `${name} went through ${phases.map(({ status }) => status)}, not ${run.phases}`
    if (at.some((time, index) => time < (at[index - 1] ?? "")) || detail.updated_at < (at.at(-1) ?? "")) return `${name} went back in time: ${at}`
    if ((revision?.id ?? null) !== detail.revision_id || (revision?.status ?? "none") !== run.revision) return `${name} has ${JSON.stringify(revision)}`
    if (!same(passed, run.checked ? checks.checks : [])) return `${name} has the checks ${JSON.stringify(passed)}`
    const folded = v1History(run.phases).map(({ first, name: phase }) => ({ phase, entered_at: at[first] }))
    if (!same(events, { deployment_id: detail.id, data: folded })) return `${name} has the events ${JSON.stringify(events)}, not ${JSON.stringify(folded)}`
    const asV1 = { ...detail, status: v1Name(detail.status), phases: folded.map(({ entered_at, phase }) => ({ status: phase, at: entered_at })) }
    if (!same(v1, asV1)) return `${name} in /v1 is ${JSON.stringify(v1)}, not ${JSON.stringify(asV1)}`
  }
  for (const { bucket, model, query, rows, v1 } of lists) {
    const chosen = runs.filter(({ name }) => {
      const run = state.runs[name]
      return run !== undefined && (bucket === "" || bucketOf(run) === bucket) && (model === "" || run.model === model)
    })
    const expected = chosen.map(({ detail: { checks: _checks, phases: _phases, revision: _revision, ...row } }) => row).sort(newestFirst)
    if (!same(rows, expected)) return `${org} lists ${query}: ${JSON.stringify(rows)}, not ${JSON.stringify(expected)}`
    if (
      !same(
        v1,
        expected.map((row) => ({ ...row, status: v1Name(row.status) }))
      )
    )
      return `${org} lists ${query} in /v1: ${JSON.stringify(v1)}`
  }
  const all = modelled.map(([, run]) => run)
  const rows = {
    deployments: all.length,
    keys: all.length,
    models: Object.values(state.models).filter((model) => model.org === org).length,
    phases: all.reduce((sum, run) => sum + run.phases.length, 0),
    audited: all.length,
    activated: all.filter((run) => phaseOf(run) === "activated" && run.input.serve).length
  }
  if (!same(counts, rows)) return `${org} has the rows ${JSON.stringify(counts)}, not ${JSON.stringify(rows)}`
  return null
}

/** Reads everything and compares it with the possible states. Returns a difference, or null if one of the states matches. */
export const compareReads = Effect.fnUntraced(function* (play: Play) {
  yield* (yield* Organizations).setStatus(play.tenants.home.orgId, "active")
  const { secret } = yield* play.tenants.home.withKey(["deployments:read"])
  yield* Effect.forEach([0, 1], (server) =>
    eventually(
      `server ${server} accepts a new key`,
      exchange(server, { method: "GET", path: "/v1/deployments?limit=1", key: secret }),
      ({ status }) => status === 200
    )
  )
  const home = yield* readAll(play, "home", secret)
  const away = yield* readAll(play, "away", play.keys.stranger.secret)
  const differences = play.states.map((state) => difference(play, state, home) ?? difference(play, state, away))
  return differences.includes(null) ? null : (differences[0] ?? "no state is left")
})
