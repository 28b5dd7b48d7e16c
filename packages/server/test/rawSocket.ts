import { connect, type Socket } from "node:net"
import { Effect } from "effect"

/** The input: text or bytes to send at once, or a function that uses the open connection. */
export type Sent = string | Uint8Array | ((socket: Socket) => void)

/** All bytes that the server sends on a new connection until it closes it. */
export const exchange = (port: number, sent: Sent) =>
  Effect.callback<string>((resume) => {
    const chunks: Array<Buffer> = []
    const socket = connect(port, "127.0.0.1", () => {
      if (typeof sent === "function") sent(socket)
      else socket.write(sent)
    })
    socket.on("data", (chunk) => chunks.push(chunk))
    // A server that closes while the client sends resets the connection. Keep what arrived before that.
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(chunks).toString("latin1"))))
    return Effect.sync(() => socket.destroy())
  })

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** The responses in the received bytes, in order, without interim responses. */
export const answersIn = (received: string, head = false): ReadonlyArray<RawAnswer> => {
  const answers: Array<RawAnswer> = []
  let rest = received
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n")
    const [line = "", ...lines] = rest.slice(0, end).split("\r\n")
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    if (end < 0 || Number.isNaN(status)) throw new Error(`This is no answer: ${rest.slice(0, 200)}`)
    const headers = Object.fromEntries(lines.map((header) => [header.replace(/:.*$/s, "").toLowerCase(), header.replace(/^[^:]*: ?/s, "")]))
    const length = head || status < 200 ? 0 : Number(headers["content-length"] ?? 0)
    const text = rest.slice(end + 4, end + 4 + length)
    rest = rest.slice(end + 4 + length)
    if (status >= 200) answers.push({ status, headers, text })
  }
  return answers
}
