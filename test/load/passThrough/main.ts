import { Agent, createServer, request } from "node:http"

// A lower bound for gateways on `node:http`: forwards each request without reading it.

const agent = new Agent({ keepAlive: true, maxSockets: 1_024, maxFreeSockets: 256 })
const engine = new URL(process.env.ENGINE ?? "")

const server = createServer({ noDelay: true }, (incoming, response) => {
  if (incoming.method === "GET") {
    response.writeHead(200).end()
    return
  }
  const headers = { accept: "application/json", "content-type": "application/json", "content-length": incoming.headers["content-length"] }
  const outgoing = request({ agent, host: engine.hostname, port: engine.port, method: "POST", path: incoming.url, headers }, (answer) => {
    const { "content-length": length, "content-type": type } = answer.headers
    response.writeHead(answer.statusCode ?? 500, { "content-type": type, ...(length === undefined ? {} : { "content-length": length }) })
    answer.pipe(response)
  })
  outgoing.on("error", () => response.destroy())
  incoming.pipe(outgoing)
})
server.keepAliveTimeout = 65_000
server.listen(Number(process.env.PORT), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
