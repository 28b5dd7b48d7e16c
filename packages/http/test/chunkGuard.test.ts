import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { connect } from "node:net"
import { assert, it } from "vitest"
import { chunkGuardOf, guardChunks } from "../src/index.ts"

/** Sends a chunked request in one piece, and returns what came back and how many bytes the server read until it closed the connection. */
const send = async (chunks: string, handle: (request: IncomingMessage, response: ServerResponse) => void) => {
  const server = createServer()
  const read = new Promise<number>((resolve) => {
    server.on("request", guardChunks)
    server.on("request", (request, response) => {
      request.socket.once("close", () => resolve(request.socket.bytesRead))
      handle(request, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const socket = connect(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1")
  let received = ""
  socket.on("data", (bytes) => {
    received += String(bytes)
  })
  const closed = new Promise((resolve) => socket.once("close", resolve))
  // The server closes the connection although the client still sends.
  socket.on("error", () => undefined)
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`)
  const [bytesRead] = await Promise.all([read, closed])
  server.close()
  return { received, bytesRead }
}

const answer = (response: ServerResponse) => response.writeHead(400, { "content-length": "2" }).end("no")

/** 960,000 bytes. */
const smallChunks = "1\r\na\r\n".repeat(160_000)

/** Node reads at most this many bytes of a connection at once. */
const oneRead = 65_536

it("a body in tiny chunks is answered after a single read, and nothing more is read until its connection is closed", async () => {
  const { bytesRead, received } = await send(smallChunks, (request, response) => {
    chunkGuardOf(request)?.onTrip(() => answer(response))
    request.resume()
  })
  assert.match(received, /^HTTP\/1.1 400 /)
  assert.isAtMost(bytesRead, oneRead)
})

it("a reader that pauses the connection after each read does not resume it after the guard tripped", async () => {
  const { bytesRead } = await send(smallChunks, (request, response) => {
    let isPaused = false
    request.on("data", () => {
      if (isPaused) return
      isPaused = true
      request.socket.pause()
      setImmediate(() => {
        isPaused = false
        request.socket.resume()
      })
    })
    chunkGuardOf(request)?.onTrip(() => answer(response))
  })
  assert.isAtMost(bytesRead, oneRead)
})

it("a body in tiny chunks that is read only after it tripped the guard is not read at all", async () => {
  const { bytesRead, received } = await send(smallChunks, (request, response) => {
    setTimeout(() => {
      assert.strictEqual(chunkGuardOf(request)?.isTripped, true)
      request.resume()
      answer(response)
    }, 50)
  })
  assert.match(received, /^HTTP\/1.1 400 /)
  assert.isAtMost(bytesRead, oneRead)
})

it("a body in chunks of 64 bytes is read to its end", async () => {
  const chunks = `40\r\n${"a".repeat(64)}\r\n`.repeat(4_000)
  const { bytesRead, received } = await send(`${chunks}0\r\n\r\n`, (request, response) => {
    let bytes = 0
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length
    })
    request.on("end", () => response.writeHead(200, { connection: "close" }).end(`${bytes} bytes`))
  })
  assert.include(received, "256000 bytes")
  assert.isAbove(bytesRead, chunks.length)
})
