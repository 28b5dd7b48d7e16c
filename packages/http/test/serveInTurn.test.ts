import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { assert, it } from "vitest"
import { serveInTurn } from "../src/index.ts"

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

/** Sends each text on a new connection. Ends when `isOver` is true or all connections are closed. Returns the received texts. */
const exchange = async (
  texts: ReadonlyArray<string>,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  isOver: (received: ReadonlyArray<string>) => boolean
) => {
  const server = createServer()
  serveInTurn(server)
  server.on("request", handle)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const received = texts.map(() => "")
  const sockets: Array<Socket> = []
  await new Promise<void>((resolve) => {
    let open = texts.length
    for (const [index, text] of texts.entries()) {
      const socket = connect(port, "127.0.0.1", () => socket.write(text))
      sockets.push(socket)
      socket.on("data", (bytes) => {
        received[index] += String(bytes)
        if (isOver(received)) resolve()
      })
      socket.on("error", () => undefined)
      socket.once("close", () => {
        open--
        if (open === 0) resolve()
      })
    }
  })
  for (const socket of sockets) socket.destroy()
  server.close()
  return received
}

const answersIn = (text: string) => text.split("HTTP/1.1 200 ").length - 1

it("requests that a connection pipelines are handled one in each turn of the event loop, in their order", async () => {
  let turn = 0
  const turns: Array<number> = []
  const paths: Array<string | undefined> = []
  const count = () => {
    turn++
    if (turns.length < 50) setImmediate(count)
  }
  await exchange(
    [Array.from({ length: 50 }, (_, index) => ask(`/${index}`)).join("")],
    ({ url }, response) => {
      if (turns.length === 0) count()
      turns.push(turn)
      paths.push(url)
      response.end("yes")
    },
    ([text = ""]) => answersIn(text) === 50
  )
  assert.strictEqual(new Set(turns).size, 50)
  assert.deepStrictEqual(
    paths,
    Array.from({ length: 50 }, (_, index) => `/${index}`)
  )
})

it("a connection on which more than 100 requests wait is closed, and none of them is handled", async () => {
  const handled: Array<string | undefined> = []
  const held: Array<ServerResponse> = []
  await exchange(
    [ask("/slow") + ask("/waits").repeat(101)],
    ({ url }, response) => {
      handled.push(url)
      held.push(response)
    },
    () => false
  )
  assert.deepStrictEqual(handled, ["/slow"])
  assert.isTrue(held[0]?.destroyed)
})

it("100 requests may wait on a connection", async () => {
  const [text = ""] = await exchange(
    [ask("/slow") + ask("/waits").repeat(100)],
    ({ url }, response) => (url === "/slow" ? void setImmediate(() => response.end("late")) : void response.end("yes")),
    ([received = ""]) => answersIn(received) === 101
  )
  assert.strictEqual(answersIn(text), 101)
})
