import type { RequestListener } from "node:http"
import { Gateway, isInferencePath, listen } from "@seatrial/gateway"
import { makeRequestListener } from "@seatrial/server"
import { Effect } from "effect"

/** The wanted port, or a free one where somebody else has it. */
export const listenNear = (handler: RequestListener, port: number) => {
  const options = { host: "127.0.0.1", grace: 3_000 }
  return listen(handler, { ...options, port }).pipe(
    Effect.catchIf(
      (error) => error.taken,
      () => listen(handler, { ...options, port: 0 })
    )
  )
}

/** API and gateway behind one address: the gateway has the paths of inference, the API all others. */
export const openFront = Effect.fn("openFront")(function* (port: number, programs: { readonly server: boolean; readonly gateway: boolean }) {
  const nothing: RequestListener = (_, response) => {
    response.writeHead(503, { "content-type": "text/plain" }).end("This program is not running here: see SEATRIAL_PROGRAMS.\n")
  }
  const server = programs.server ? yield* makeRequestListener : nothing
  const gateway = programs.gateway ? (yield* Gateway).handler : nothing
  return yield* listenNear((request, response) => (isInferencePath(request.url) ? gateway : server)(request, response), port)
})
