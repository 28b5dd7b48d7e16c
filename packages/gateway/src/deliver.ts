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
  /** Of the stream that was passed on last. */
  readonly reader: StreamReader
  readonly dialect: Dialect
  readonly id: string
  /** The whole answer, where it is not a stream. */
  readonly body: string | null
  readonly error: Refusal | null
}

/** The last bytes of the answer: of a stream that has begun its terminal frame, whatever happened. */
const finalText = ({ body, dialect, error, id, reader, stream }: Delivery): { readonly text: string; readonly encoding: "latin1" | "utf8" } => {
  if (stream !== null && (stream.started || error === null)) return { text: error === null ? reader.ending() : reader.failure(error, id), encoding: "latin1" }
  return { text: error === null ? (body ?? "") : dialect.errorBody(error, id), encoding: "utf8" }
}

/** The digests of a request and its answer, of which `delivery` is still to go out. */
export const closeDigests = (digests: ReceiptDigests, delivery: Delivery): SignedDigests => {
  if (delivery.error === clientClosed || delivery.response.destroyed) return digests.digests(false)
  const { encoding, text } = finalText(delivery)
  digests.hashAnswer(text, encoding)
  return digests.digests(true)
}

/** Tells the caller how the request ended: a stream that has begun ends in its terminal frame, whatever happened. */
export const deliver = ({ body, dialect, error, id, reader, response, stream }: Delivery): void => {
  if (error === clientClosed || response.destroyed) response.destroy()
  else if (stream !== null && (stream.started || error === null)) stream.end(error === null ? reader.ending() : reader.failure(error, id))
  else if (error !== null) writeRefusal(response, error, id, dialect)
  else response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body ?? "") }).end(body ?? "")
}

/** Waits until the answer has been handed over; the connection of a caller who takes nothing of it for `writeStall` milliseconds is cut. */
export const handedOver = (response: ServerResponse, writeStall: number): Effect.Effect<void> =>
  // The system takes most answers at once and whole: those need neither a timer nor a wait.
  response.destroyed || (response.writableEnded && response.writableLength === 0)
    ? Effect.void
    : Effect.callback((resume) => {
        const settle = () => resume(Effect.void)
        // It follows the last byte too.
        response.once("close", settle)
        // The connection's own, which begins anew as long as it sends.
        response.setTimeout(writeStall, () => response.destroy())
        return Effect.sync(() => response.off("close", settle))
      })
