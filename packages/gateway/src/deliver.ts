import type { ServerResponse } from "node:http"
import type { ReceiptDigests as SignedDigests } from "@seatrial/domain"
import { Effect } from "effect"
import type { Dialect, StreamReader } from "./dialects/Dialect.ts"
import type { EventStream } from "./EventStream.ts"
import type { ReceiptDigests } from "./ReceiptDigests.ts"
import { clientClosed, type Refusal, writeRefusal } from "./refusals.ts"

export interface Delivery {
  readonly response: ServerResponse
  readonly stream: EventStream | null
  /** Reader of the last relayed stream. */
  readonly reader: StreamReader
  readonly dialect: Dialect
  readonly id: string
  /** The complete answer; null for a stream. */
  readonly body: string | Buffer | null
  readonly error: Refusal | null
}

/** The last bytes of the answer. A stream that has begun always gets its terminal frame. */
const finalText = ({ body, dialect, error, id, reader, stream }: Delivery): { readonly text: string | Buffer; readonly encoding: "latin1" | "utf8" } => {
  if (stream !== null && (stream.started || error === null)) return { text: error === null ? reader.ending() : reader.failure(error, id), encoding: "latin1" }
  return { text: error === null ? (body ?? "") : dialect.errorBody(error, id), encoding: "utf8" }
}

/** The digests of a request and its answer, including the bytes that `delivery` will send. */
export const closeDigests = Effect.fnUntraced(function* (digests: ReceiptDigests, delivery: Delivery): Effect.fn.Return<SignedDigests> {
  if (delivery.error === clientClosed || delivery.response.destroyed) return digests.digests(false)
  const { encoding, text } = finalText(delivery)
  if (typeof text === "string") digests.hashAnswer(text, encoding)
  else yield* digests.hashLargeAnswer(text)
  return digests.digests(true)
})

/** Sends the end of the answer. A stream that has begun always gets its terminal frame. */
export const deliver = ({ body, dialect, error, id, reader, response, stream }: Delivery): void => {
  if (error === clientClosed || response.destroyed) response.destroy()
  else if (stream !== null && (stream.started || error === null)) stream.end(error === null ? reader.ending() : reader.failure(error, id))
  else if (error !== null) writeRefusal(response, error, id, dialect)
  else response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body ?? "") }).end(body ?? "")
}

/**
 * Waits until the answer has been sent. Closes the connection if the caller reads nothing for `writeStallMillis`
 * milliseconds.
 */
export const handedOver = (response: ServerResponse, writeStallMillis: number): Effect.Effect<void> =>
  // The operating system usually takes an answer at once. Then no timer and no wait are needed.
  response.destroyed || (response.writableEnded && response.writableLength === 0)
    ? Effect.void
    : Effect.callback((resume) => {
        const settle = () => resume(Effect.void)
        // Also emitted after the last byte.
        response.once("close", settle)
        // The socket's own timer, which restarts whenever bytes are sent.
        response.setTimeout(writeStallMillis, () => response.destroy())
        return Effect.sync(() => response.off("close", settle))
      })
