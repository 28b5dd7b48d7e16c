import { createServer } from "node:http"
import pg from "pg"
import { statements } from "./statements.ts"

// The floor: nothing but `node:http`, the driver and `JSON.stringify`, with as many connections as the server has. No keys, no rates, no checks.

const { DATABASE_URL, ORG_ID, PORT, PREPARED, STATEMENT } = process.env
const { name, text } = statements[STATEMENT === "list" ? "list" : "deployment"]
const pool = new pg.Pool({ connectionString: DATABASE_URL ?? "", max: 10 })

/** With a name the driver prepares the statement once for each connection. */
const query = (values: ReadonlyArray<string>) => pool.query({ ...(PREPARED === "true" ? { name } : {}), text, values: [...values] })

const server = createServer((request, response) => {
  const path = request.url ?? "/"
  const answer = (body: string) => response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
  if (path === "/healthz") return answer("{}")
  const found =
    STATEMENT === "list"
      ? query([ORG_ID ?? "", "51"]).then(({ rows }) => JSON.stringify({ object: "list", data: rows.slice(0, 50), next_cursor: null }))
      : query([ORG_ID ?? "", path.slice(path.lastIndexOf("/") + 1)]).then(({ rows }) => JSON.stringify(rows[0]))
  found.then(answer, (error: unknown) => {
    process.stderr.write(`${error}\n`)
    response.writeHead(500).end()
  })
})

server.listen(Number(PORT), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
