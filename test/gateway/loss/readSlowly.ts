import { connect } from "node:net"
import type { Plan } from "./LossyEngine.ts"

/** A caller that reads one byte on each call. */
export interface SlowReader {
  /** Bytes that it has read. */
  readonly count: () => number
  readonly readOne: () => void
  readonly leave: () => void
}

/** Requests a stream and reads only one byte from the connection until the next call. */
export const readSlowly = (address: string, key: string, model: string, plan: Plan): SlowReader => {
  const { hostname, port } = new URL(address)
  let count = 0
  const buffer = Buffer.alloc(1)
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: {
      buffer,
      callback: () => {
        count++
        return false
      }
    }
  })
  socket.on("error", () => {})
  const body = JSON.stringify({ model, messages: [{ role: "user", content: JSON.stringify(plan) }], stream: true })
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
  return { count: () => count, readOne: () => void socket.resume(), leave: () => void socket.destroy() }
}
