/** A message between the gateway and a process that parses bodies: a head in JSON, and a body of raw bytes. */
export interface MessageFrame {
  readonly head: string
  readonly body: Uint8Array
}

/** Two 32-bit lengths, of head and body. */
const prefixLength = 8

/** The buffers of a frame, to be written in order. The body is not copied. */
export const encodeFrame = ({ body, head }: MessageFrame): ReadonlyArray<Uint8Array> => {
  const start = Buffer.alloc(prefixLength + Buffer.byteLength(head))
  start.writeUInt32LE(start.length - prefixLength, 0)
  start.writeUInt32LE(body.length, 4)
  start.write(head, prefixLength)
  return [start, body]
}

/** The first frame of a process, sent when it has started. */
export const readyFrame: MessageFrame = { head: "", body: new Uint8Array() }

/** Returns a function that accepts chunks and calls `onFrame` for each complete frame. */
export const makeFrameReader = (onFrame: (frame: { readonly head: string; readonly body: Buffer }) => void) => {
  let chunks: Array<Buffer> = []
  let length = 0
  let needed = prefixLength
  const read = () => {
    while (length >= needed) {
      const [first = Buffer.alloc(0)] = chunks
      const bytes = chunks.length === 1 ? first : Buffer.concat(chunks)
      chunks = [bytes]
      const bodyStart = prefixLength + bytes.readUInt32LE(0)
      needed = bodyStart + bytes.readUInt32LE(4)
      if (length < needed) return
      const frame = { head: bytes.toString("utf8", prefixLength, bodyStart), body: bytes.subarray(bodyStart, needed) }
      const rest = bytes.subarray(needed)
      chunks = rest.length > 0 ? [rest] : []
      length = rest.length
      needed = prefixLength
      onFrame(frame)
    }
  }
  return (chunk: Buffer): void => {
    chunks.push(chunk)
    length += chunk.length
    read()
  }
}
