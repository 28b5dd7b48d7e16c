import type { ServerResponse } from "node:http"
import { Effect } from "effect"
import type { Dialect, StreamReader } from "./dialects/Dialect.ts"
import type { EventStream } from "./EventStream.ts"
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
