import { createHash, randomBytes } from "node:crypto"
import { createServer } from "node:http"

const size = Number(process.env.STORAGE_BYTES)
const pattern = randomBytes(64 * 1024 * 1024)
const pieceBytes = 1024 * 1024

const sha256 = () => {
  const hash = createHash("sha256")
  for (let at = 0; at < size; at += pattern.length) hash.update(pattern.subarray(0, Math.min(pattern.length, size - at)))
  return hash.digest("hex")
}

/** Serves ranges of one large file of random bytes from memory, under every path except `/sha256`, which returns its hash after a while. */
const server = createServer({ highWaterMark: pieceBytes, keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.url === "/ready" || request.url === "/sha256") {
    response.end(request.url === "/ready" ? "" : sha256())
    return
  }
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")
  const from = match === null ? 0 : Number(match[1])
  const end = Math.min(match === null ? size : Number(match[2]) + 1, size)
  response.writeHead(match === null ? 200 : 206, {
    "content-length": end - from,
    ...(match === null ? {} : { "content-range": `bytes ${from}-${end - 1}/${size}` })
  })
  let at = from
  const send = () => {
    while (at < end) {
      const offset = at % pattern.length
      const bytes = Math.min(pieceBytes, pattern.length - offset, end - at)
      at += bytes
      if (!response.write(pattern.subarray(offset, offset + bytes))) {
        response.once("drain", send)
        return
      }
    }
    response.end()
  }
  send()
})
server.listen(Number(process.env.STORAGE_PORT), "127.0.0.1")
