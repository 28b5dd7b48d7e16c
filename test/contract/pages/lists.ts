import { AuditEventList, DeploymentList, OrgModelList, RequestList, SuspicionList, V1DeploymentList } from "@seatrial/api"
import { encodeIdBody, type OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import type { Filter, ListUnderTest, Row } from "./ListUnderTest.ts"

const none = () => Effect.succeed<ReadonlyArray<Row>>([])
const fixedId = (prefix: string, number: number) => `${prefix}_${encodeIdBody(1_700_000_000_000, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, number))}`
const models = [fixedId("mdl", 1), fixedId("mdl", 2), fixedId("mdl", 3)] as const
const keys = [fixedId("key", 1), fixedId("key", 2)] as const
const users = [fixedId("usr", 1), fixedId("usr", 2)] as const
const actors = [...users, "admin:ada@example.org"] as const

const same = (name: string, field: string, values: readonly [string, ...Array<string>]): Filter => ({
  name,
  value: (draw) => draw.of(values),
  keeps: ({ fields }, value) => fields[field] === value
})

/** `from` is before and `to` after the middle, so that no combination is refused. */
const times: ReadonlyArray<Filter> = [
  { name: "from", value: (draw, _, near) => String(draw.chance(0.1) ? 0 : near - draw.below(30)), keeps: ({ at }, value) => at >= Number(value) },
  {
    name: "to",
    value: (draw, _, near) => (draw.chance(0.1) ? "9007199254740991" : String(near + 1 + draw.below(30))),
    keeps: ({ at }, value) => at < Number(value)
  }
]

const requests: ListUnderTest = {
  paths: ["/v1/requests", "/v1/org/requests"],
  page: () => RequestList,
  table: "requests",
  idPrefix: "req",
  filters: [
    same("model_id", "model", [...models, "nothing"]),
    same("api_key_id", "key", [...keys, fixedId("key", 9)]),
    same("status", "status", ["success", "client_error", "server_error"]),
    ...times
  ],
  prepare: none,
  record: (_, __, draw) => {
    const running = draw.chance(0.1)
    const status = draw.of([200, 200, 302, 399, 400, 404, 429, 499, 500, 503, 599])
    const columns = {
      state: running ? "running" : draw.of(["completed", "refused"]),
      model_id: draw.of([...models, null]),
      api_key_id: draw.of([...keys, null]),
      endpoint: "/v1/chat/completions",
      status_code: running ? null : status
    }
    const of = status < 400 ? "success" : status < 500 ? "client_error" : "server_error"
    return { columns, fields: running ? null : { model: columns.model_id, key: columns.api_key_id, status: of } }
  }
}

/** The models of an organization's runs. */
const ownModel = (orgId: OrgId, number: number) => `mdl_${orgId.slice(4, -1)}${number}`
const buckets = { activated: "succeeded", failed: "failed", cancelled: "stopped" } as const

const deployments: ListUnderTest = {
  paths: ["/v1/deployments", "/v1/org/deployments"],
  page: (path) => (path === "/v1/deployments" ? V1DeploymentList : DeploymentList),
  table: "deployments",
  idPrefix: "dep",
  filters: [
    { name: "model_id", value: (draw, orgId) => ownModel(orgId, draw.of([0, 1, 2, 9])), keeps: ({ fields }, value) => fields.model === value },
    same("status", "bucket", ["running", "succeeded", "failed", "stopped"])
  ],
  prepare: Effect.fnUntraced(function* (sql, orgId) {
    const at = new Date(0)
    const model = (number: number) => ({
      id: ownModel(orgId, number),
      org_id: orgId,
      slug: `m-${number}`,
      display_name: "M",
      hf_repo: "a/b",
      created_at: at,
      updated_at: at
    })
    yield* sql`INSERT INTO models ${sql.insert([model(0), model(1), model(2)])}`
    return []
  }),
  record: (sql, orgId, draw, _, at) => {
    const phase = draw.of(["screening", "waiting", "queued", "booting", "checking", "activating", "activated", "activated", "failed", "failed", "cancelled"])
    const bucket = phase === "activated" || phase === "failed" || phase === "cancelled" ? buckets[phase] : "running"
    const when = new Date(at)
    const columns = {
      model_id: ownModel(orgId, draw.below(3)),
      phase,
      phase_since: when,
      failure_code: phase === "failed" ? "code" : null,
      failure_text: phase === "failed" ? "text" : null,
      serving: sql.json({}),
      serve: true,
      updated_at: when,
      ended_at: bucket === "running" ? null : when
    }
    return { columns, fields: { model: columns.model_id, bucket } }
  }
}

const orgModels: ListUnderTest = {
  paths: ["/v1/org/models"],
  page: () => OrgModelList,
  table: "models",
  idPrefix: "mdl",
  filters: [
    same("status", "status", ["pending", "active", "disabled"]),
    same("visibility", "visibility", ["public", "private"]),
    {
      name: "q",
      value: (draw) => draw.of(["tiny", "TINY", "%", "_", "\\", "a%b", "a_b", "%%", "0% s", "ärger", "ÄRGER", "/", "e", " ", "big_model", "'", "nobody", "\0"]),
      keeps: ({ fields }, value) => [fields.slug, fields.name, fields.repo].some((text) => String(text).toLowerCase().includes(value.toLowerCase()))
    }
  ],
  prepare: none,
  record: (_, __, draw, id, at) => {
    const columns = {
      slug: `${draw.of(["tiny", "giant", "a_b", "aXb", "x.y"])}-${id.slice(-6)}`,
      display_name: draw.of(["Tiny Chat", "100% sure", "a%b", "under_score", "back\\slash", "Ärger", "it's", "plain"]),
      status: draw.of(["pending", "active", "active", "disabled"]),
      visibility: draw.of(["private", "private", "public"]),
      hf_repo: draw.of(["seatrial/tiny-chat", "Acme/Big_Model", "acme/BigXModel"]),
      updated_at: new Date(at),
      deleted_at: draw.chance(0.1) ? new Date(at) : null
    }
    const { deleted_at, display_name, hf_repo, slug, status, visibility } = columns
    return { columns, fields: deleted_at === null ? { slug, name: display_name, repo: hf_repo, status, visibility } : null }
  }
}

const auditEvents: ListUnderTest = {
  paths: ["/v1/org/audit-events"],
  page: () => AuditEventList,
  table: "audit_events",
  idPrefix: "aud",
  filters: [
    same("actor_user_id", "actor", [...actors, fixedId("usr", 9), "nobody", "admin:nobody"]),
    same("resource_type", "resource", ["org", "membership", "invitation", "api_key", "billing", "model_config"]),
    ...times
  ],
  // Creating an organization and its key already writes audit events.
  prepare: Effect.fnUntraced(function* (sql, orgId) {
    const rows = yield* sql<{ id: string; created_at: Date; actor_user_id: string | null; resource_type: string }>`
      SELECT id, created_at, actor_user_id, resource_type FROM audit_events WHERE org_id = ${orgId}`
    return rows.map((row) => ({ id: row.id, at: row.created_at.getTime(), fields: { actor: row.actor_user_id, resource: row.resource_type } }))
  }),
  record: (sql, _, draw) => {
    const columns = {
      actor_kind: draw.of(["user", "admin", "system", "webhook"]),
      actor_user_id: draw.of([...actors, null]),
      resource_type: draw.of(["org", "membership", "invitation", "api_key", "billing", "model_config", "model_config"]),
      resource_id: "x",
      action: "created",
      before: sql.json(draw.of<unknown>([false, 5, "text", [1, null], {}])),
      after: sql.json({ a: [1, null] })
    }
    return { columns, fields: { actor: columns.actor_user_id, resource: columns.resource_type } }
  }
}

/** The run whose engine the suspicions are about. */
const ownRun = (orgId: OrgId) => `dep_${orgId.slice(4, -1)}8`

const suspicions: ListUnderTest = {
  paths: ["/v1/org/suspicions"],
  page: () => SuspicionList,
  table: "suspicions",
  idPrefix: "sus",
  filters: [],
  prepare: Effect.fnUntraced(function* (sql, orgId) {
    const at = new Date(0)
    const times = { created_at: at, updated_at: at }
    const model_id = ownModel(orgId, 8)
    yield* sql`INSERT INTO models ${sql.insert({ id: model_id, org_id: orgId, slug: "m-8", display_name: "M", hf_repo: "a/b", ...times })}`
    const run = { id: ownRun(orgId), org_id: orgId, model_id, phase: "activated", phase_since: at, serving: sql.json({}), serve: true, ended_at: at }
    yield* sql`INSERT INTO deployments ${sql.insert({ ...run, ...times })}`
    return []
  }),
  record: (_, orgId, draw, id, at) => ({
    columns: {
      deployment_id: ownRun(orgId),
      model_id: ownModel(orgId, 8),
      revision_id: fixedId("rev", 1),
      pod: `pod-${draw.below(2)}`,
      pod_uid: draw.chance(0.5) ? id : crypto.randomUUID(),
      restarts: draw.below(3),
      node: draw.of(["node-1", null]),
      since: new Date(at - draw.below(1_000)),
      probes: 21,
      evidence: 7e12,
      engines: 2,
      withdrawn_at: draw.of([new Date(at), null])
    },
    fields: {}
  })
}

/** Every list of the contract, and the list of suspicions. */
export const lists = [requests, deployments, orgModels, auditEvents, suspicions] as const
