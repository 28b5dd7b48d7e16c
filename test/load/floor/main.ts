import { createHash } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import { encodeIdBody, idMillis } from "@seatrial/domain"
import pg from "pg"
import { statements } from "./statements.ts"

// A minimal server as lower bound: only `node:http`, the driver and `JSON.stringify`, with as many connections as the server. No keys, rates or checks.

const { DATABASE_URL, ORG_ID, PORT, PREPARED, STATEMENT, USER_ID } = process.env
const isStatement = (name: string | undefined): name is keyof typeof statements => name !== undefined && Object.hasOwn(statements, name)
if (!isStatement(STATEMENT)) throw new Error(`There is no statement ${STATEMENT}.`)
const { name, text } = statements[STATEMENT]
const pool = new pg.Pool({ connectionString: DATABASE_URL ?? "", max: 10 })

/** With a name, the driver prepares the statement once per connection. */
const query = (values: ReadonlyArray<unknown>) => pool.query({ ...(PREPARED === "true" ? { name } : {}), text, values: [...values] })

const idOf = (path: string) => path.slice(path.lastIndexOf("/") + 1)

const read = async (path: string): Promise<string> => {
  switch (STATEMENT) {
    case "list": {
      const { rows } = await query([ORG_ID ?? "", "51"])
      return JSON.stringify({ object: "list", data: rows.slice(0, 50), next_cursor: null })
    }
    case "request": {
      const id = idOf(path)
      return JSON.stringify((await query([ORG_ID ?? "", id, new Date(idMillis(id)).toISOString()])).rows[0])
    }
    default:
      return JSON.stringify((await query([ORG_ID ?? "", idOf(path)])).rows[0])
  }
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  return text
}

/** Only the statement of a create, without the preceding checks. */
const create = async (request: IncomingMessage): Promise<string> => {
  const text = await bodyOf(request)
  const { model_name, source } = JSON.parse(text)
  const now = Date.now()
  const id = (prefix: string) => `${prefix}_${encodeIdBody(now, crypto.getRandomValues(new Uint8Array(10)))}`
  const { rows } = await query([
    ORG_ID ?? "",
    USER_ID ?? "",
    request.headers["idempotency-key"],
    createHash("sha256").update(text).digest("hex"),
    id("dep"),
    new Date(now).toISOString(),
    id("mdl"),
    model_name,
    source.repo,
    id("aud"),
    JSON.stringify({ slug: model_name, repo: source.repo })
  ])
  return JSON.stringify({ id: rows[0].id, object: "deployment", model_id: rows[0].model_id, revision_id: null, status: "screening" })
}

const server = createServer((request, response) => {
  const path = request.url ?? "/"
  const answer = (body: string) =>
    response.writeHead(request.method === "POST" ? 201 : 200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
  if (path === "/healthz") return answer("{}")
  const answered = request.method === "POST" ? create(request) : read(path)
  answered.then(answer, (error: unknown) => {
    process.stderr.write(`${error}\n`)
    response.writeHead(500).end()
  })
})

server.listen(Number(PORT), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
