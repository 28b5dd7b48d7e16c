import { createHash } from "node:crypto"
import { idMillis } from "@seatrial/domain"
import Fastify from "fastify"
import pg from "pg"
import { statements } from "../floor/statements.ts"

// A comparable server with Fastify: a cached API key by hash from Postgres, token buckets for the key and its organization, a named statement for the
// record, and a schema that serializes it. It validates neither the query nor the ID, and does not notice revoked keys.

const { DATABASE_URL, PORT } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL ?? "", max: 10 })

interface Caller {
  readonly keyId: string
  readonly orgId: string
  readonly scopes: ReadonlyArray<string>
  readonly until: number
}
const callers = new Map<string, Caller>()

const callerOf = async (authorization: string | undefined): Promise<Caller | undefined> => {
  if (authorization === undefined || !authorization.startsWith("Bearer ")) return undefined
  const hash = createHash("sha256").update(authorization.slice(7)).digest("hex")
  const known = callers.get(hash)
  if (known !== undefined && known.until > Date.now()) return known
  const { rows } = await pool.query({
    name: "key",
    text: `SELECT k.id AS "keyId", k.org_id AS "orgId", k.scopes FROM api_keys k JOIN organizations o ON o.id = k.org_id
      WHERE k.secret_sha256 = $1 AND k.revoked_at IS NULL AND o.status = 'active' AND (k.expires_at IS NULL OR k.expires_at > now())`,
    values: [Buffer.from(hash, "hex")]
  })
  if (rows[0] === undefined) return undefined
  const caller: Caller = { ...rows[0], until: Date.now() + 30_000 }
  callers.set(hash, caller)
  return caller
}

const buckets = new Map<string, { tokens: number; at: number }>()
const draw = (name: string, perSecond: number): boolean => {
  const now = Date.now()
  const bucket = buckets.get(name) ?? { tokens: perSecond, at: now }
  const tokens = Math.min(perSecond, bucket.tokens + ((now - bucket.at) / 1_000) * perSecond)
  buckets.set(name, { tokens: tokens - 1, at: now })
  return tokens >= 1
}
const plenty = 1_000_000_000

const nullable = (type: string) => ({ type: [type, "null"] })
const record = {
  type: "object",
  properties: {
    id: { type: "string" },
    object: { type: "string" },
    state: { type: "string" },
    model_id: nullable("string"),
    model: nullable("string"),
    api_key_id: nullable("string"),
    endpoint: { type: "string" },
    created_at: { type: "string" },
    status_code: nullable("integer"),
    input_tokens: nullable("integer"),
    output_tokens: nullable("integer"),
    cache_read_tokens: nullable("integer"),
    cache_write_tokens: nullable("integer"),
    cost_micros: nullable("string"),
    ttft_ms: nullable("number"),
    latency_ms: nullable("number"),
    finish_reason: nullable("string"),
    streamed: nullable("boolean"),
    error: {
      type: ["object", "null"],
      properties: { code: { type: "string" }, message: { type: "string" }, param: nullable("string") }
    },
    receipt_url: nullable("string")
  }
}

const app = Fastify()
app.get("/healthz", () => ({}))
app.get<{ Params: { readonly id: string } }>("/v1/requests/:id", { schema: { response: { 200: record } } }, async (request, reply) => {
  const caller = await callerOf(request.headers.authorization)
  if (caller === undefined) return reply.code(401).send({ error: "unauthorized" })
  if (!draw(caller.keyId, plenty) || !draw(caller.orgId, plenty)) return reply.code(429).send({ error: "rate limited" })
  if (!caller.scopes.includes("requests:read")) return reply.code(403).send({ error: "forbidden" })
  const { id } = request.params
  const { rows } = await pool.query({ ...statements.request, values: [caller.orgId, id, new Date(idMillis(id)).toISOString()] })
  const row = rows[0]
  if (row === undefined) return reply.code(404).send({ error: "not found" })
  return {
    ...row,
    object: "request",
    created_at: row.created_at.toISOString(),
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message, param: row.error_param },
    receipt_url: row.state === "completed" ? `/v1/receipts/${id}` : null
  }
})

await app.listen({ host: "127.0.0.1", port: Number(PORT) })
process.once("SIGTERM", () => process.exit(0))
