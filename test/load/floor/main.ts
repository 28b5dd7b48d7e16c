import { createServer } from "node:http"
import { idMillis } from "@seatrial/domain"
import pg from "pg"
import { statements } from "./statements.ts"

// The floor: nothing but `node:http`, the driver and `JSON.stringify`, with as many connections as the server has. No keys, no rates, no checks.

const { DATABASE_URL, ORG_ID, PORT, PREPARED, STATEMENT } = process.env
const isStatement = (name: string | undefined): name is keyof typeof statements => name !== undefined && Object.hasOwn(statements, name)
if (!isStatement(STATEMENT)) throw new Error(`There is no statement ${STATEMENT}.`)
const { name, text } = statements[STATEMENT]
const pool = new pg.Pool({ connectionString: DATABASE_URL ?? "", max: 10 })

/** With a name the driver prepares the statement once for each connection. */
const query = (values: ReadonlyArray<string>) => pool.query({ ...(PREPARED === "true" ? { name } : {}), text, values: [...values] })

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

const server = createServer((request, response) => {
  const path = request.url ?? "/"
  const answer = (body: string) => response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
  if (path === "/healthz") return answer("{}")
  read(path).then(answer, (error: unknown) => {
    process.stderr.write(`${error}\n`)
    response.writeHead(500).end()
  })
})

server.listen(Number(PORT), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
