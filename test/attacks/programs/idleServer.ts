import { createServer } from "node:http"

// A server that only the honest client asks: its latency shows the load of the machine, independent of the programs under test.

const server = createServer((_, response) => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  if (address !== null && typeof address === "object") process.stdout.write(`listens on http://127.0.0.1:${address.port}\n`)
})
// The harness ends it by closing its input.
process.stdin.resume().once("end", () => process.exit(0))
